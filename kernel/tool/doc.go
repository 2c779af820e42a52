// Package tool installs the programs that the kernel runs - GoNB, goimports and gopls - in the
// versions that it was tested with, in a folder of their own. It changes none of them, and neither
// uses nor replaces what the user has installed elsewhere, except that it copies a program of
// exactly the right version.
//
//	pins, err := tool.Pins(source)
//	for _, pin := range pins {
//		err := tool.Install(ctx, pin, tool.Options{Dir: bin, SourceDir: source, Go: "go", Environ: os.Environ()})
//	}
package tool
