// Package export turns the cells of a notebook into one Go module that behaves as they do under
// GoNB: one main package for each main cell, with the declarations known at that cell. It compiles
// nothing (submit/build does) and runs nothing.
//
//	nb, err := nbformat.Read("mnist.ipynb")
//	...
//	module, err := export.FromNotebook(nb, export.Options{SourceDir: gonbatchSource})
//	...
//	err = module.Write("mnist") // then: cd mnist && go run ./train
//
// # Which cells become programs
//
// A main cell has a %% or %main line, an %exec line, or a func main. Each becomes its own package
// main, in a folder named after the cell in the job. A cell without a main runs nothing by itself;
// its declarations (init_* functions too) are part of every later main cell's program.
//
// A shell line (!cmd) or cell (%%bash, %%sh, %%script, %%writefile) also becomes a cell of the job:
// a script that runs once, at its place between the programs; a ! line in a cell with a main runs
// before that main. submit/modules handles !* lines that change go.mod. A magic that waits for user
// input (%with_inputs) is an error.
//
// A %test cell becomes a program that runs its tests once. A cell tagged rank-0 or one-task (the
// same) runs once, on the first node, instead of on every rank. A cell tagged raises-exception may
// fail, and so may commands in a cell with %allow_fail. Jupytext's active-ipynb leaves a cell out
// and active-go includes a raw cell; remove-cell and other display tags change nothing. A
// //go:embed line is an error, and so is %wasm, which needs a browser.
//
// A cell tagged skip-execution or notebook-only is left out, with its declarations and magics:
// nbclient, nbconvert and papermill treat skip-execution the same way. Options.Cells can include
// such a cell.
//
// # Parameters
//
// The variables and constants of cells tagged parameters are the notebook's parameters.
// Options.Parameters replaces their values; the new ones must fit their Go types. The cell that
// papermill adds, tagged injected-parameters, counts too.
//
// # Positions
//
// The programs have //line directives, so compile errors and panics name the notebook, the cell and
// the line: "mnist.ipynb[cell 3]:12" is line 12 of the third cell, counted as Jupyter counts.
package export
