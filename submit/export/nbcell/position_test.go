package nbcell

import (
	"testing"

	"gonbatch/internal/nbformat"
)

func TestDescribePosition(t *testing.T) {
	nb := &nbformat.Notebook{Path: "/runs/n/notebook.ipynb", Cells: []*nbformat.Cell{
		{Type: nbformat.Markdown, Source: "# Load", Number: 1},
		{Type: nbformat.Code, Source: "var x = 1", Number: 2},
		{Type: nbformat.Code, Source: "%%\n\tpanic(x)\r", Number: 3, ID: "c3"},
	}}
	for _, tt := range []struct{ name, text, want string }{
		{"a stack trace", "\tnotebook/train/my.ipynb[cell 3]:2 +0x1d", "my.ipynb, cell 3 (id c3, under \"Load\"), line 2:\n\tpanic(x)"},
		{"a log line", "my.go[cell 2]:1: here", "my.go, cell 2 (under \"Load\"), line 1:\n\tvar x = 1"},
		{"the end of a name", "at y.ipynb[cell 2]:1", "my.ipynb, cell 2 (under \"Load\"), line 1:\n\tvar x = 1"},
		{"no such cell", "my.ipynb[cell 9]:1", ""},
		{"no such line", "my.ipynb[cell 3]:9", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := nbformat.Places(tt.text)
			if len(at) != 1 {
				t.Fatalf("positions %q, want one", at)
			}
			if got := DescribePosition(nb, "my.ipynb", at[0]); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
