package table_test

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/table"
)

// write writes files into a new folder, as 0.csv and so on.
func write(t *testing.T, contents ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, content := range contents {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.csv", i)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// model is a random table.
type model struct {
	columns []string
	rows    []map[string]float32
}

// randomTable returns a table, and files that have it. In each file the columns have another order.
func randomTable(t *testing.T, random *rand.Rand) (m model, contents []string) {
	t.Helper()
	for i := range 2 + random.IntN(6) {
		m.columns = append(m.columns, []string{"plain", "with space", "with,comma", "with\nline", `with "quote"`, "ünï", "x\xff"}[i])
	}
	m.columns = append(m.columns, "text", "class")
	for range 1 + random.IntN(4) {
		columns := slices.Clone(m.columns)
		if len(contents) > 0 {
			random.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
		}
		var content strings.Builder
		if random.IntN(2) == 0 {
			content.WriteString("\ufeff")
		}
		w := csv.NewWriter(&content)
		w.UseCRLF = random.IntN(2) == 0
		records := [][]string{columns}
		for range random.IntN(20) {
			row := map[string]float32{}
			record := make([]string, len(columns))
			for i, name := range columns {
				row[name], record[i] = randomCell(random, name)
			}
			m.rows, records = append(m.rows, row), append(records, record)
		}
		if err := w.WriteAll(records); err != nil {
			t.Fatal(err)
		}
		text := content.String()
		if random.IntN(2) == 0 {
			text = strings.TrimRight(text, "\r\n")
		}
		contents = append(contents, text)
	}
	return m, contents
}

func randomCell(random *rand.Rand, name string) (float32, string) {
	switch name {
	case "text":
		return 0, strings.Repeat("a \"quoted\"\r\n, text", random.IntN(3))
	case "class":
		class := random.IntN(3)
		return float32(class), []string{"cat", "dog", "big, \"bad\"\nwolf"}[class]
	}
	value := float32(random.NormFloat64())
	switch random.IntN(5) {
	case 0:
		return -1, []string{"", " ", "NA", "nan"}[random.IntN(4)]
	case 1:
		return value, fmt.Sprintf("  %g ", value)
	}
	return value, fmt.Sprint(value)
}

// TestAgainstModel reads random batches of random tables, several at once.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		m, contents := randomTable(t, random)
		if len(m.rows) == 0 {
			continue
		}
		dir := write(t, contents...)
		inputs := m.columns[:len(m.columns)-2]
		config := table.Config{Inputs: inputs, Missing: map[string]float32{}}
		if random.IntN(2) == 0 {
			config.Class, config.Classes = "class", []string{"cat", "dog", "big, \"bad\"\nwolf"}
		} else {
			config.Inputs, config.Labels = inputs[1:], inputs[:1]
		}
		for _, name := range inputs {
			config.Missing[name] = -1
		}
		if random.IntN(2) == 0 {
			config.Dir = filepath.Join(dir, "kept") // Otherwise in memory.
		}
		for range 2 { // The second time, the numbers are there.
			ds, err := table.CSV(filepath.Join(dir, "*.csv"), config)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if ds.Len() != len(m.rows) || !slices.Equal(ds.Inputs(), config.Inputs) {
				t.Fatalf("seed %d: %d rows, want %d; inputs %q", seed, ds.Len(), len(m.rows), ds.Inputs())
			}
			var group sync.WaitGroup
			for range 3 {
				indices := make([]int, 1+random.IntN(2*len(m.rows)))
				for i := range indices {
					indices[i] = random.IntN(len(m.rows))
				}
				group.Go(func() { compare(t, ds, config, m, indices) })
			}
			group.Wait()
		}
	}
}

func compare(t *testing.T, ds *table.Table, c table.Config, m model, indices []int) {
	t.Helper()
	x, y, err := ds.Batch(indices)
	if err != nil {
		t.Error(err)
		return
	}
	var wantX, wantY, gotY []float32
	for _, index := range indices {
		for _, name := range c.Inputs {
			wantX = append(wantX, m.rows[index][name])
		}
		for _, name := range slices.Concat(c.Labels, []string{c.Class})[:1] {
			wantY = append(wantY, m.rows[index][name])
		}
	}
	if c.Class != "" {
		for _, class := range tensors.MustCopyFlatData[int32](y[0]) {
			gotY = append(gotY, float32(class))
		}
	} else {
		gotY = tensors.MustCopyFlatData[float32](y[0])
	}
	if got := tensors.MustCopyFlatData[float32](x[0]); !slices.Equal(got, wantX) || !slices.Equal(gotY, wantY) {
		t.Errorf("rows %v: got %v and %v, want %v and %v", indices, got, gotY, wantX, wantY)
	}
}

func TestShapes(t *testing.T) {
	dir := write(t, "a;b;c;d\n1;2;3;4\n\n5;6;7;8\n")
	tests := []struct {
		name   string
		config table.Config
		want   string
	}{
		{"inputs only", table.Config{}, "[(Float32)[2, 4]] [[5 6 7 8 1 2 3 4]] [] []"},
		{"labels", table.Config{Labels: []string{"d", "a"}}, "[(Float32)[2, 2]] [[6 7 2 3]] [(Float32)[2, 2]] [[8 5 4 1]]"},
		{"class", table.Config{Class: "b", Inputs: []string{"d"}}, "[(Float32)[2, 1]] [[8 4]] [(Int32)[2, 1]] [[6 2]]"},
		{"an input that is the label", table.Config{Inputs: []string{"c"}, Labels: []string{"c"}}, "[(Float32)[2, 1]] [[7 3]] [(Float32)[2, 1]] [[7 3]]"},
		{"own names", table.Config{Columns: []string{"x", "a", "y", "z"}, Inputs: []string{"y"}, Missing: map[string]float32{"y": 9}}, "has the header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Comma = ';'
			ds, err := table.CSV(filepath.Join(dir, "0.csv"), tt.config)
			if len(tt.config.Columns) > 0 {
				if err == nil || !strings.Contains(err.Error(), `0.csv: line 1: column "y": "c" is not a number`) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			x, y, err := ds.Batch([]int{1, 0})
			if err != nil {
				t.Fatal(err)
			}
			if got := show(x) + " " + show(y); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// show writes shapes and values.
func show(all []*tensors.Tensor) string {
	shapes, values := []string{}, []any{}
	for _, t := range all {
		shapes = append(shapes, t.Shape().String())
		if t.DType().IsFloat() {
			values = append(values, tensors.MustCopyFlatData[float32](t))
		} else {
			values = append(values, tensors.MustCopyFlatData[int32](t))
		}
	}
	return fmt.Sprint(shapes, " ", values)
}

func TestErrors(t *testing.T) {
	tests := []struct {
		name   string
		config table.Config
		files  []string
		want   string
	}{
		{"empty", table.Config{}, []string{""}, "0.csv: it is empty"},
		{"no rows", table.Config{}, []string{"a,b\n", "a,b"}, "no rows in 2 files"},
		{"no such column", table.Config{Labels: []string{"price"}}, []string{"a,b\n1,2\n"}, `it has no column "price", only ["a" "b"]`},
		{"another comma", table.Config{Labels: []string{"b"}}, []string{"a;b\n1;2\n"}, `only ["a;b"]: set Config.Comma`},
		{"twice", table.Config{}, []string{"a,a\n1,2\n"}, `it has two columns "a"`},
		{"an input twice", table.Config{Inputs: []string{"a", "a"}}, []string{"a,b\n1,2\n"}, `the column "a" is named twice in the inputs ["a" "a"]`},
		{"a label among the inputs", table.Config{Inputs: []string{"a", "b"}, Labels: []string{"b"}}, []string{"a,b\n1,2\n"}, `the column "b" is named twice in the inputs ["a" "b"] and the labels ["b"]`},
		{"the class among the inputs", table.Config{Inputs: []string{"a", "b"}, Class: "b"}, []string{"a,b\n1,2\n"}, `the column "b" is named twice`},
		{"no name", table.Config{}, []string{",a\n1,2\n"}, `a column has no name: list the columns to use in Config.Inputs, out of ["" "a"]`},
		{"only labels", table.Config{Labels: []string{"a"}}, []string{"a\n1\n"}, `no inputs: it has the columns ["a"]`},
		{"labels and class", table.Config{Labels: []string{"a"}, Class: "b"}, []string{"a,b,c\n"}, "name one of them"},
		{"missing column in a later file", table.Config{Inputs: []string{"a"}}, []string{"a,b\n1,2\n", "b\n1\n"}, `1.csv: it has no column "a", only ["b"]`},
		{"further column in a later file", table.Config{}, []string{"a,b\n1,2\n", "a,b,c\n1,2,3\n"}, `1.csv: it has the column "c", which the first file lacks`},
		{"not a number", table.Config{}, []string{"a,b\n1,2\n", "a,b\r\n1,2\r\n\"3\",x y\r\n"}, `1.csv: line 3: column "b": "x y" is not a number`},
		{"after a long value", table.Config{Inputs: []string{"a"}}, []string{"a,b\n1,\"\n\n\"\n?,2\n"}, `0.csv: line 5: column "a": "?" is not a number`},
		{"missing", table.Config{}, []string{"a,b\n1,\n"}, `line 2: column "b": the value is missing (""): set Config.Missing`},
		{"infinite", table.Config{}, []string{"a\n-inf\n"}, `"-inf" does not fit into a float32`},
		{"large", table.Config{}, []string{"a\n1e40\n"}, `line 2: column "a": "1e40" does not fit into a float32`},
		{"too few values", table.Config{}, []string{"a,b\n1\n"}, "line 2: it has 1 value for 2 columns"},
		{"too many values", table.Config{}, []string{"a,b\n1,2\n1,2,3\n"}, "line 3: it has 3 values for 2 columns"},
		{"quote in the middle", table.Config{}, []string{"a,b\n1,2\n1,2\"3\n"}, "parse error on line 3, column 4: bare"},
		{"open quote", table.Config{}, []string{"a,b\n1,\"2\n3,4\n"}, "0.csv: record on line 2; parse error on line 3"},
		{"long row", table.Config{}, []string{"a,b\n1,\"2" + strings.Repeat("\n1,2", 5<<20)}, "a row has more than 16 MB: a quote is probably not closed"},
		{"not UTF-8", table.Config{}, []string{"a\xff\n\xff\n"}, `column "a\xff": "\xff" is not a number`},
		{"UTF-16", table.Config{}, []string{"\xff\xfea\x00\n\x00"}, "it is in UTF-16"},
		{"lines of old Macs", table.Config{}, []string{"a,b\r1,2\r3,4\r"}, "its lines end with CR only"},
		{"the last line of an old Mac", table.Config{}, []string{"a,b\r1,2"}, "its lines end with CR only"},
		{"truncated gzip", table.Config{}, []string{"\x1f\x8b\x08"}, "0.csv: the file is truncated"},
		{"binary", table.Config{}, []string{"a\n\x00\n"}, `"\x00" is not a number`},
		{"bad class", table.Config{Class: "b"}, []string{"a,b\n1,cat\n"}, `column "b": "cat" is not the number of a class: set Config.Classes`},
		{"negative class", table.Config{Class: "b"}, []string{"a,b\n1,-1\n"}, `"-1" is not the number of a class`},
		{"unknown class", table.Config{Class: "b", Classes: []string{"dog"}}, []string{"a,b\n1,cat\n"}, `"cat" is none of the classes ["dog"]`},
		{"no class", table.Config{Class: "b", Classes: []string{"dog"}}, []string{"a,b\n1,\n"}, `"" is none of the classes`},
		{"same classes", table.Config{Class: "b", Classes: []string{"dog", "dog"}}, []string{"a,b\n"}, `class 0 and class 1 have the same name, "dog"`},
		{"unused missing", table.Config{Missing: map[string]float32{"c": 1}}, []string{"a,b\n"}, `missing values of "c", which is neither`},
		{"comma", table.Config{Comma: '"'}, []string{"a,b\n"}, "invalid field or comment delimiter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, tt.files...)
			for _, kept := range []bool{false, true} {
				if tt.config.Dir = ""; kept || len(tt.files[0]) > 1<<20 {
					tt.config.Dir = filepath.Join(dir, "kept")
				}
				_, err := table.CSV(filepath.Join(dir, "?.csv"), tt.config)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %.300v, want %q", err, tt.want)
				}
			}
		})
	}
}

func TestBatchRefuses(t *testing.T) {
	ds, err := table.CSV(filepath.Join(write(t, "a\n1\n"), "0.csv"), table.Config{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	for _, indices := range [][]int{nil, {-1}, {0, 1}} {
		if _, _, err := ds.Batch(indices); err == nil || !strings.Contains(err.Error(), "table: one: ") {
			t.Errorf("%v: %v", indices, err)
		}
	}
}

// TestSettings: numbers that are kept for one configuration are not used for another.
func TestSettings(t *testing.T) {
	dir := write(t, "a,b\n1,\n")
	for _, value := range []float32{3, 4, 3} {
		ds, err := table.CSV(filepath.Join(dir, "0.csv"), table.Config{Missing: map[string]float32{"b": value}, Dir: filepath.Join(dir, "kept")})
		if err != nil {
			t.Fatal(err)
		}
		x, _, err := ds.Batch([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		if got := tensors.MustCopyFlatData[float32](x[0]); got[1] != value {
			t.Errorf("got %v, want %g", got, value)
		}
	}
}

// TestFingerprint: it changes with the files and the configuration, but not with their folder.
func TestFingerprint(t *testing.T) {
	open := func(text string, classes ...string) *table.Table {
		ds, err := table.CSV(filepath.Join(write(t, text), "*.csv"), table.Config{Class: "b", Classes: classes})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	first := open("a,b\n1,cat\n", "cat", "dog")
	if again := open("a,b\n1,cat\n", "cat", "dog"); again.Fingerprint() != first.Fingerprint() || first.Fingerprint() == "" {
		t.Errorf("%q, in another folder %q", first.Fingerprint(), again.Fingerprint())
	}
	if open("a,b\n2,cat\n", "cat", "dog").Fingerprint() == first.Fingerprint() || open("a,b\n1,dog\n", "cat", "dog").Fingerprint() == first.Fingerprint() {
		t.Error("other numbers or classes have the same fingerprint")
	}
	if open("a,b\n1,cat\n", "dog", "cat").Fingerprint() == first.Fingerprint() || open("a,b\n11,cat\n", "cat", "dog").Fingerprint() == first.Fingerprint() {
		t.Error("other classes, or other files, have the same")
	}
	if got := data.Classes(data.First(first, 1)); !slices.Equal(got, []string{"cat", "dog"}) {
		t.Errorf("the classes are %q", got)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "0.csv")
	random := rand.New(rand.NewPCG(1, 2))
	var content strings.Builder
	content.WriteString("a,b,c,d,e,f,g,h\n")
	for range 100_000 {
		for range 7 {
			fmt.Fprintf(&content, "%.4f,", random.NormFloat64())
		}
		content.WriteString("1\n")
	}
	if err := os.WriteFile(path, []byte(content.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(content.Len()))
	b.ResetTimer()
	for range b.N {
		if _, err := table.CSV(path, table.Config{Class: "h"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	dir := b.TempDir()
	content := "a,b,c,d,e,f,g,h\n" + strings.Repeat("1,2,3,4,5,6,7,8\n", 100_000)
	if err := os.WriteFile(filepath.Join(dir, "0.csv"), []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	ds, err := table.CSV(filepath.Join(dir, "0.csv"), table.Config{Class: "h", Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	indices := make([]int, 256)
	b.ResetTimer()
	for range b.N {
		for i := range indices {
			indices[i] = rand.IntN(ds.Len())
		}
		x, y, err := ds.Batch(indices)
		if err != nil {
			b.Fatal(err)
		}
		x[0].MustFinalizeAll()
		y[0].MustFinalizeAll()
	}
}

// TestCarriageReturns: a CR in quotes, or before an LF that is far behind, ends no line.
func TestCarriageReturns(t *testing.T) {
	wide := strings.Repeat("a", 256<<10-1) + "\r\n1\r\n"
	for name, text := range map[string]string{"quoted": "\"a\rb\",c\n1,2\n", "at the end of a buffer": wide, "one byte later": "a" + wide} {
		path := filepath.Join(t.TempDir(), "0.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if ds, err := table.CSV(path, table.Config{}); err != nil || ds.Len() != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
