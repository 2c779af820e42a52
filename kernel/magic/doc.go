// Package magic has the magics that this kernel adds to GoNB's for jobs: %submit, %%submit, %jobs,
// %logs, %wait, %cancel and %result. They run the submit command as a separate program. They read
// the output of a run (its metrics, its logs) from its run directory.
//
//	magics := magic.New(magic.Options{Program: "/usr/local/bin/submit", Environ: os.Environ(), Dir: folder})
//	err := magics.Run(ctx, session, cell.Magic{Name: "submit", Args: "--nodes 2"})   // a card in the notebook follows the job
//
// A session is the kernel's service for a magic: the session's cells, and ways to show something.
package magic
