// Package browser runs notebooks for tests in the real JupyterLab, in a real headless Chromium, the
// way a user does: open a notebook, choose from the menu, type a cell, look, click.
//
//	lab := browser.Open(t, browser.Options{Folder: folder, DataDir: data})   // data has the kernel: kernel.Install
//	lab.Notebook("mnist.ipynb")
//	lab.Menu("Run", "Run All Cells")
//	cell := lab.Run("%submit --nodes 2")
//	lab.Shows(cell, "completed", time.Minute)
//	lab.Screenshot("submitted")
//
// It needs the Python environment that `make setup` builds in .cache/lab-venv, and Debian's
// chromium. Without them, a test is skipped with the reason; with CI=true it fails.
package browser
