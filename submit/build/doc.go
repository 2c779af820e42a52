// Package build compiles an exported notebook once: it keeps programs in the user's cache under a
// hash of everything they are made from, so it doesn't compile an unchanged notebook again. It
// keeps the fifty builds used last. It neither exports (submit/export does) nor runs anything.
//
//	result, err := build.Build(ctx, moduleDir, module, build.Options{})
//	var mistakes *build.Error
//	if errors.As(err, &mistakes) {
//		for _, p := range mistakes.Problems {
//			fmt.Println(p.Number, p.Line, p.Message)
//		}
//	}
//	...
//	program := result.Programs["train"]
//
// Programs are built with -trimpath and without symbol tables (-ldflags "-s -w", which halves the
// time to link); panics still name the notebook, the cell and the line. GOFLAGS is honored, except
// for flags that change where modules come from or what is printed.
package build
