// Package kernel turns GoNB into a Jupyter kernel whose notebooks can import gonbatch's packages
// and GoMLX right away, without a set-up cell and without a network.
//
// GoNB is started unmodified, as a child process. It starts each session with an empty Go module.
// This package replaces that with a complete one (go.mod and go.sum with gonbatch's own versions),
// using a small `go` command that comes first on the session's PATH. Package kernel/relay, which
// speaks Jupyter's protocol, is between the client and GoNB. It adds to GoNB: history, checks of
// whether a cell is complete, requests answered while a cell runs, cells aborted after one that
// failed, and shell commands that fail their cell (unless the cell has the line %allow_fail).
//
//	dir, err := kernel.Install(kernel.InstallOptions{Getenv: os.Getenv}) // once: Jupyter lists "Go (gonbatch)"
//	err = kernel.Run(ctx, kernel.Options{                          // Jupyter starts this, once a session
//		ConnectionFile: file, SourceDir: source, PluginDir: plugins, Environ: os.Environ(), Log: os.Stderr,
//	})
package kernel
