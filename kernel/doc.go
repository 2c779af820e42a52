// Package kernel makes a Jupyter kernel out of GoNB in which a notebook can import gonbatch's packages and GoMLX at once,
// with no set-up cell and without a network.
//
// GoNB is started unmodified, as a child. It starts each session with an empty Go module; this package hands it a complete one
// (go.mod and go.sum with the versions of gonbatch's own) by a small `go` command that stands first on the session's PATH.
// The package does not speak Jupyter's protocol.
//
//	dir, err := kernel.Install(kernel.InstallOptions{})            // once: Jupyter lists "Go (gonbatch)"
//	err = kernel.Run(ctx, kernel.Options{                          // Jupyter starts this, once a session
//		ConnectionFile: file, SourceDir: source, PluginDir: plugins, Environ: os.Environ(),
//	})
package kernel
