// Package build compiles an exported notebook, once: programs are kept in the user's cache under a
// hash of all that they are made from, so an unchanged notebook is not compiled again. The fifty
// that were used last are kept. It neither exports (submit/export does) nor runs anything.
//
//	result, err := build.Build(ctx, moduleDir, module, build.Options{})
//	var mistakes *build.Error
//	if errors.As(err, &mistakes) {
//		for _, p := range mistakes.Problems {
//			fmt.Println(p.Cell, p.Line, p.Message)
//		}
//	}
//	...
//	program := result.Programs["train"]
//
// Programs are built with -trimpath and without symbol tables (-ldflags "-s -w", which halves the
// time to link); panics name notebook, cell and line all the same. GOFLAGS is honoured but for what
// would change where modules come from or what is printed.
package build
