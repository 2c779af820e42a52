// Package export turns the cells of a notebook into one Go module that does what they do under
// GoNB: one main package for each main cell, with the declarations as of that cell. It compiles
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
// A main cell has a %% or %main line, an %exec line, or a func main. Each becomes a package main of
// its own, in a folder that has the cell's name in the job. A cell without a main runs nothing by
// itself; its declarations (init_* functions too) are in every program of a later main cell.
//
// A shell line (!cmd) or cell (%%bash, %%sh, %%script, %%writefile) becomes a cell of the job too:
// a script that runs once, at its place between the programs; a ! line in a cell with a main runs
// before that main. !* lines that change go.mod are left to submit/modules. A magic that waits for
// a person (%with_inputs) is an error.
//
// A %test cell becomes a program too, which runs its tests once. A cell tagged rank-0 or one-task
// (the same) runs once, on the first node, and not on every rank; one tagged raises-exception, and
// commands in a cell with %allow_fail, may fail. Jupytext's active-ipynb keeps a cell out,
// active-go takes a raw cell in; remove-cell and other tags about display change nothing. What
// //go:embed names is copied from the notebook's folder. %wasm needs a browser and is an error.
//
// A cell tagged skip-execution or notebook-only is left out, with its declarations and magics:
// nbclient, nbconvert and papermill treat skip-execution the same way. Options.Cells can put such a
// cell back.
//
// # Parameters
//
// The variables and constants of cells tagged parameters are the notebook's parameters.
// Options.Parameters replaces their values, and checks the new ones against their Go types. The
// cell that papermill adds, tagged injected-parameters, counts too.
//
// # Positions
//
// The programs have //line directives, so compile errors and panics name notebook, cell and line:
// "mnist.ipynb[cell 3]:12" is line 12 of the third cell, counted as Jupyter counts.
package export
