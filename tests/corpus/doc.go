// Package corpus holds notebooks that try each feature of GoNB by itself, and some real ones, and
// compares what GoNB makes of them with what `submit --local` does: standard output, standard
// error, exit status and files, cell by cell.
//
//	go test ./tests/corpus                                  # submit's side of all, GoNB's of every 15th, another set each day
//	go test ./tests/corpus -run Record -update              # record GoNB's side of all again
//	go test ./tests/corpus -run 'Differential/^panic$' -v   # one notebook
//
// A notebook's own metadata say what it is for, which files lie beside it, and where and why the
// two sides differ:
//
//	"corpus": {
//	  "files": {"words.txt": "from a file\n"},
//	  "deviations": [{"cell": 2, "stdout": "from a file\n", "reason": "GoNB loses comments above variables"}]
//	}
//
// What submit does is seen twice: in the executed notebook that its run leaves, and by running the
// programs of that run one by one.
//
// A deviation names a cell and gives what submit does there; one that no longer differs fails the
// test, as does any difference that is not listed. "refused" is a notebook that submit does not
// accept, with the message. What GoNB says about itself ("Set: A=...", "exit status 2") is no
// output of a cell and left out on its side (chatter.go). Stack traces are compared by the cells
// and lines that they go through.
//
// Notebooks that were not written for this corpus are compared with GoNB as its users have it, in
// any folder:
//
//	go run ./tests/corpus/compare FOLDER
//
// TestForeign does that with those of other modules and of the folder users. Their rules are in the
// folder rules: what is replaced, masked and excepted, and how each cell ends in GoNB.
package corpus
