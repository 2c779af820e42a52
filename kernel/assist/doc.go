// Package assist completes Go code in cells and describes its identifiers. It asks gopls, which it
// starts ahead of the first request, about the cell and the session's declarations; it executes
// nothing, and works while a cell runs. It doesn't know magics: those are in package gocell.
//
//	a := assist.New(assist.Options{Program: "/usr/local/bin/gopls", Dir: module, Built: built, Environ: os.Environ()})
//	defer a.Close()
//	go a.Warm(ctx)
//	done, err := a.Complete(ctx, "%%\nfmt.Printl", 13) // done.Matches[0].Text is "Println"
package assist
