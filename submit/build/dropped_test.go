package build

import (
	"slices"
	"strings"
	"testing"
)

// TestCheckFindsDroppedErrors: by type, whatever the call looks like, and only where it is ignored.
func TestCheckFindsDroppedErrors(t *testing.T) {
	m, dir := written(t, cells(
		"import \"gonbatch/data\"\nimport d \"gonbatch/data\"",
		"var split = data.Split\nfunc check(err error) {\n\tif err != nil {\n\t\tpanic(err)\n\t}\n}",
		"func sets() data.Dataset {\n\tds, _ := data.ImageFolder(\"x\", data.FolderConfig{})\n\treturn ds\n}",
		"%%\nds := sets()\nd.Split(ds, 1, 0.5, 0.5)\n(d.SplitCounts)(ds, 1, 5)\nparts, err := data.Split(ds, 1, 0.5)\ncheck(err)\n_, _, _ = ds.Batch([]int{1})\nx, _, _ := ds.Batch([]int{2})\nds.Batch([]int{3})\nfmt.Println(len(parts), data.Classes(ds), x)\ngo data.Split(ds, 1, 0.5)\ndefer ds.Batch(nil)",
		"func load() error { return nil }\nfunc pair() (int, error) { return 0, nil }\n%%\nload()\nif err := load(); err != nil {\n\tpanic(err)\n}\npair()\nos.MkdirAll(\"out\", 0o755)\ndefer load()\nos.Remove(\"x\")",
		"%test\nfunc TestLoad(t *testing.T) {\n\tload()\n}",
	))
	problems, err := Check(t.Context(), dir, m, Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		place, _, _ := strings.Cut(p.String(), " is ignored")
		got = append(got, strings.TrimPrefix(place, "n.ipynb, "))
	}
	want := []string{
		"cell 3, line 2, column 6: the error of data.ImageFolder",
		"cell 4, line 11, column 1: the error of data.Split",
		"cell 4, line 12, column 1: the error of data.Dataset.Batch",
		"cell 4, line 3, column 1: the error of data.Split",
		"cell 4, line 4, column 1: the error of data.SplitCounts",
		"cell 4, line 8, column 7: the error of data.Dataset.Batch",
		"cell 4, line 9, column 1: the error of data.Dataset.Batch",
		"cell 5, line 4, column 1: the error of load",
		"cell 5, line 9, column 1: the error of os.MkdirAll",
		"cell 6, line 3, column 2: the error of load",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
