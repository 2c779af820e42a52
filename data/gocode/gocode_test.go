package gocode

import (
	"strings"
	"testing"
	"testing/fstest"

	"gonbatch/data"
)

func TestText(t *testing.T) {
	text := Text()
	v, err := data.Characters(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) < 500_000 || len(text) > 5_000_000 || v.Len() > 200 {
		t.Errorf("%d bytes of %d different characters, want about a megabyte of ASCII", len(text), v.Len())
	}
	if !strings.Contains(text, "\npackage gocode\n") || strings.Contains(text, "\nfunc TestText(") {
		t.Error("this package isn't in the text, or its test is")
	}
}

func TestJoin(t *testing.T) {
	files := fstest.MapFS{
		"go.mod": {Data: []byte("module")}, "b/b.go": {Data: []byte("package b\n")}, "a/a.go": {Data: []byte("package a\n")}, "a/a_test.go": {Data: []byte("test")},
		"a/testdata/x.go": {Data: []byte("data")}, "b/b.c": {Data: []byte("int")},
	}
	if text, err := join(files); err != nil || text != "package a\npackage b\n" {
		t.Errorf("%q, %v", text, err)
	}
}
