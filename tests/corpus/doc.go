// Package corpus has notebooks that each test one feature of GoNB, and some real ones, and compares
// what GoNB and `submit --local` make of them, cell by cell: standard output, standard error, exit
// status and files.
//
//	go test ./tests/corpus                                  # submit's side of all, GoNB's of every 15th, a different set each day
//	go test ./tests/corpus -run Record -update              # record GoNB's side of all again
//	go test ./tests/corpus -run 'Differential/^panic$' -v   # one notebook
//
// The metadata of a notebook says what the notebook is for, which files are next to it, and where
// and why the two sides differ:
//
//	"corpus": {
//	  "files": {"words.txt": "from a file\n"},
//	  "deviations": [{"cell": 2, "stdout": "from a file\n", "reason": "GoNB loses comments above variables"}]
//	}
//
// What submit does is observed twice: in the executed notebook that its run leaves, and by running
// the programs of that run one by one.
//
// A deviation names a cell and what submit does there. A deviation that no longer differs fails the
// test, as does any difference that is not listed. "refused" marks a notebook that submit rejects,
// and has the message. What GoNB says about itself ("Set: A=...", "exit status 2") is not output of
// a cell, and is removed on its side (chatter.go). Stack traces are compared by the cells and lines
// that they go through.
//
// Notebooks in any folder that were not written for this corpus can be compared with plain GoNB:
//
//	go run ./tests/corpus/compare FOLDER
//
// TestForeign does that with notebooks of other modules and of the folder users. Their rules are in
// the folder rules: replacements, masks, exceptions, and how each cell ends in GoNB.
package corpus
