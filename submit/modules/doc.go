// Package modules finds the modules of an exported notebook on the login node, as GoNB does for a
// cell: it runs the notebook's own go get, go mod and go work lines, keeps the versions that the
// notebook or its session had, and takes the newest versions of modules that are still missing.
// Then goimports adds the packages that no cell imports. Jobs find everything in go.mod and go.sum.
//
//	module, err := export(export.Resolved{}) // submit/export's FromNotebook
//	result, err := modules.Resolve(ctx, module, export, modules.Options{Lock: modules.LockFile(path)})
//	for _, taken := range result.Taken {
//		fmt.Println(taken) // github.com/go-gota/gota v0.12.0 (the newest)
//	}
//	module = result.Module
//
// A file next to the notebook keeps the result, so that an unchanged notebook gets the same modules
// without a network and without a go command. A notebook that needs only gonbatch's own modules has
// no such file.
package modules
