// Package page reads the project's Markdown pages for tests: the commands that a page tells its
// reader to type, and the sections that are generated from code.
//
//	for _, block := range page.Commands(t, "README.md") {
//		fmt.Println(block.Script)
//	}
//	page.Section(t, "docs/reference.md", "submit", text) // go test -update writes it
package page
