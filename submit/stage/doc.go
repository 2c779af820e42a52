// Package stage turns a notebook into a run directory: it exports and compiles the notebook, and
// puts everything that a job needs into one folder on the shared file system. It starts no job.
//
//	module, err := notebook.Export(ctx, shell)
//	prepared, err := stage.Prepare(ctx, shell, notebook, module, spec.Platform)
//	draft, err := prepared.Stage(ctx, shell, "runs", spec.Name)
package stage
