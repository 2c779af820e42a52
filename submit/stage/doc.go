// Package stage makes a run directory of a notebook: it exports and compiles the notebook, and puts
// everything that a job needs in one folder on the shared file system. It starts no job.
//
//	module, err := notebook.Export(ctx, shell)
//	prepared, err := stage.Prepare(ctx, shell, notebook, module, spec.Platform)
//	dir, err := prepared.Stage(shell, "runs", spec.Name)
package stage
