// Package jupyter runs notebooks for tests in a real Jupyter client, nbclient, under a kernel
// installed for that test only.
//
//	data := t.TempDir() // a Jupyter data folder
//	_, err := kernel.Install(kernel.InstallOptions{DataDir: data, Program: submit})
//	outputs := jupyter.Execute(t, jupyter.Run{Notebook: "notebooks/mnist.ipynb", Kernel: kernel.Name, DataDir: data})
//
// It needs the Python environment that `make setup` builds in .cache/venv. Without it a test is
// skipped with the reason, but with CI=true it fails.
package jupyter
