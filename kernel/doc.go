// Package kernel makes a Jupyter kernel out of GoNB in which a notebook can import gonbatch's
// packages and GoMLX at once, with no set-up cell and without a network.
//
// GoNB is started unmodified, as a child. It starts each session with an empty Go module; this
// package hands it a complete one (go.mod and go.sum with the versions of gonbatch's own) by a
// small `go` command that stands first on the session's PATH. Between the client and GoNB stands
// package kernel/relay, which speaks Jupyter's protocol. What it adds to GoNB: history, checks of
// whether a cell is complete, requests answered while a cell runs, cells aborted after one that
// failed, and shell commands that fail their cell (the line %allow_fail in the cell lets them).
//
//	dir, err := kernel.Install(kernel.InstallOptions{Getenv: os.Getenv}) // once: Jupyter lists "Go (gonbatch)"
//	err = kernel.Run(ctx, kernel.Options{                          // Jupyter starts this, once a session
//		ConnectionFile: file, SourceDir: source, PluginDir: plugins, Environ: os.Environ(),
//	})
package kernel
