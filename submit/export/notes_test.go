package export

import (
	"strings"
	"testing"
)

func TestNotes(t *testing.T) {
	tests := []struct {
		name  string
		cells []string
		want  string
	}{
		{"nothing to note", []string{"func f() {}", "%%\nf()", "%%\nprintln(1)"}, ""},
		{"a file of all ranks", []string{"%%\n_, err := os.Create(\"out.txt\")\nprintln(err)"}, "n.ipynb, cell 1, line 2: every rank of a job calls os.Create for the same file; guard it with if world.IsMain(), or tag the main cell rank-0"},
		{"a file of all ranks, by a function", []string{"func save() error { return os.WriteFile(\"a\", nil, 0o644) }\nfunc unused() error { return os.Remove(\"a\") }\nfunc all() error { return save() }", "%%\nprintln(all())", "%%\nprintln(all())"},
			"n.ipynb, cell 1, line 1: every rank of a job calls os.WriteFile for the same file; guard it with if world.IsMain(), or tag the main cell rank-0"},
		{"files of one rank", []string{"func save() error { return os.WriteFile(\"a\", nil, 0o644) }", "%%\nif world.IsMain() {\n\tprintln(save())\n}\nprintln(world.OnMain(func() error { return save() }))\nprintln(os.Remove(fmt.Sprint(\"part-\", world.Rank())))\nprintln(os.Remove(tempFile))"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells(tt.cells...), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, note := range m.Notes {
				got = append(got, note.String())
			}
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}
