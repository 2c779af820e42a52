// Package gocode is a text to train language models with: the Go code of gonbatch's own library,
// about a megabyte. The text is in the program, so that it needs neither a file nor a network on
// the nodes of a cluster. It differs between versions of gonbatch.
//
//	text := gocode.Text()
//	vocabulary, err := data.Characters(text)
//	windows, err := data.Text("go", text, vocabulary, 64)
package gocode

import (
	"fmt"
	"io/fs"
	"strings"

	"gonbatch"
)

// Text returns the code: all files of Go but tests, one after the other, in the order of their
// paths.
func Text() string {
	text, err := join(gonbatch.Library)
	if err != nil {
		panic(fmt.Errorf("gocode: read the files in the program: %w", err)) // They can always be read.
	}
	return text
}

func join(files fs.FS) (string, error) {
	var text strings.Builder
	err := fs.WalkDir(files, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
			return err
		}
		file, err := fs.ReadFile(files, path)
		text.Write(file)
		return err
	})
	return text.String(), err
}
