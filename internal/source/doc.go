// Package source writes gonbatch's own library source to disk, where the go.mod of an exported
// notebook points to it. The source is embedded in the program, so a machine needs no checkout. The
// package does not compile anything.
//
//	dir, err := source.Dir(ctx, source.Options{Getenv: os.Getenv})
//	if err != nil {
//		return err
//	}
//	module, err := export.FromNotebook(nb, export.Options{SourceDir: dir})
package source
