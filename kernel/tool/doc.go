// Package tool installs the programs that the kernel runs - GoNB, goimports and gopls - at the
// versions that it was tested with, in a folder of their own. It changes none of them, and neither
// looks at nor replaces what the user has installed elsewhere, but for copying a program that has
// the very version.
//
//	pins, err := tool.Pins(source)
//	for _, pin := range pins {
//		err := tool.Install(ctx, pin, tool.Options{Dir: bin, SourceDir: source, Go: "go", Environ: os.Environ()})
//	}
package tool
