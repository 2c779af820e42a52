package table_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/compressed/compressedtest"
	"gonbatch/data/lane/lanetest"
	"gonbatch/data/table"
)

// writeCompressed writes files into a new folder, compressed as it happens.
func writeCompressed(t *testing.T, random *rand.Rand, contents ...string) (dir string) {
	t.Helper()
	for i, content := range contents {
		switch random.IntN(3) {
		case 0:
			contents[i] = compressedtest.Gzip(t, content)
		case 1:
			contents[i] = compressedtest.Zstd(t, content)
		}
	}
	return write(t, contents...)
}

// rowsOf returns the numbers of a part's rows after skipping the first ones: inputs, then labels.
func rowsOf(s data.Stream, part, skip int) (all [][]float32, err error) {
	for example, err := range s.Read(part, 0, skip) {
		if err != nil {
			return all, err
		}
		x, y, err := s.Batch([]any{example})
		if err != nil {
			return all, err
		}
		row := tensors.MustCopyFlatData[float32](x[0])
		for _, t := range y {
			row = append(row, tensors.MustCopyFlatData[float32](t)...)
		}
		all = append(all, row)
	}
	return all, nil
}

func sameRows(a, b [][]float32) bool {
	return slices.EqualFunc(a, b, func(a, b []float32) bool { return slices.Equal(a, b) })
}

// TestStreamAgainstModel: a stream has the rows of random tables, in order, however many are
// skipped, and Open reads the same files, compressed or not.
func TestStreamAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		m, contents := randomTable(t, random)
		numbers := m.columns[:len(m.columns)-2]
		config := table.Config{Inputs: numbers[1:], Labels: numbers[:1], Missing: map[string]float32{}}
		for _, name := range numbers {
			config.Missing[name] = -1
		}
		pattern := filepath.Join(writeCompressed(t, random, contents...), "*.csv")
		s, err := table.StreamCSV(pattern, config)
		if err != nil {
			t.Fatal(err)
		}
		var want [][]float32
		for _, row := range m.rows {
			var values []float32
			for _, name := range slices.Concat(config.Inputs, config.Labels) {
				values = append(values, row[name])
			}
			want = append(want, values)
		}
		var got [][]float32
		for part := range s.Parts() {
			rows, err := rowsOf(s, part, 0)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for skip := range len(rows) + 2 {
				rest, err := rowsOf(s, part, skip)
				if err != nil || !sameRows(rest, rows[min(skip, len(rows)):]) {
					t.Fatalf("seed %d, part %d after %d rows: %v, %v, want the end of %v", seed, part, skip, rest, err, rows)
				}
			}
			got = append(got, rows...)
		}
		if s.Parts() != len(contents) || !sameRows(got, want) {
			t.Fatalf("seed %d: %d parts of %d files: %v, want %v", seed, s.Parts(), len(contents), got, want)
		}
		if len(want) == 0 {
			continue
		}
		ds, err := table.CSV(pattern, config)
		if err != nil || ds.Len() != len(want) {
			t.Fatalf("seed %d: %v, %v", seed, ds, err)
		}
	}
}

// TestStreamInLanes: the lanes have each row of a pass once, and resume at any row.
func TestStreamInLanes(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 4))
		var contents, names []string
		for file := range 1 + random.IntN(9) {
			content := "a,id\n"
			for i := range random.IntN(12) + 1 - min(file, 1) {
				content += fmt.Sprintf("0,%d\n", 100*file+i)
				names = append(names, fmt.Sprint(100*file+i))
			}
			contents = append(contents, content)
		}
		s, err := table.StreamCSV(filepath.Join(writeCompressed(t, random, contents...), "*.csv"), table.Config{Inputs: []string{"id"}})
		if err != nil {
			t.Fatal(err)
		}
		lanetest.Divide(t, s, seed, names, func(example any) string {
			x, _, err := s.Batch([]any{example})
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(tensors.MustCopyFlatData[float32](x[0])[0])
		})
	}
}

// TestStreamBatch makes tensors of rows in any order.
func TestStreamBatch(t *testing.T) {
	s, err := table.StreamCSV(filepath.Join(write(t, "a,b,c\n1,2,cat\n3,4,dog\n"), "0.csv"), table.Config{Name: "pets", Class: "c", Classes: []string{"dog", "cat"}})
	if err != nil {
		t.Fatal(err)
	}
	var rows []any
	for row, err := range s.Read(0, 5, 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	x, y, err := s.Batch([]any{rows[1], rows[0], rows[1]})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(x)+" "+show(y), "[(Float32)[3, 2]] [[3 4 1 2 3 4]] [(Int32)[3, 1]] [[0 1 0]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, _, err := s.Batch(nil); err == nil || err.Error() != "table: pets: a batch of no examples" {
		t.Errorf("got %v", err)
	}
	if s.Name() != "pets" || s.(data.NamedParts).PartName(0) != "0.csv" {
		t.Errorf("%s with the part %s", s.Name(), s.(data.NamedParts).PartName(0))
	}
}

// TestStreamErrors: an error names the file, the line and the column, and comes after the rows
// before.
func TestStreamErrors(t *testing.T) {
	cut := compressedtest.Gzip(t, "a,b\n"+strings.Repeat("1,2\n", 20))
	tests := []struct {
		name, content string
		config        table.Config
		rows          int
		want          string
	}{
		{"empty file", "", table.Config{}, 0, "it is empty: its first line must have the names"},
		{"too few values", "a,b\n1,2\n3\n", table.Config{}, 1, "line 3: it has 1 value for 2 columns"},
		{"too many values", "a,b\n1,2\n1,2\n3,4,5\n", table.Config{}, 2, "line 4: it has 3 values for 2 columns"},
		{"no number", "a,b\n1,2\n3,x\n", table.Config{}, 1, `line 3: column "b": "x" is not a number`},
		{"missing", "a,b\n1,2\n,4\n", table.Config{}, 1, `line 3: column "a": the value is missing (""): set Config.Missing`},
		{"other columns", "a,c\n1,2\n", table.Config{}, 0, `it has the column "c", which the first file lacks`},
		{"cut in a row", "a,b\n1,2\n3,", table.Config{}, 1, `line 3: column "b": the value is missing`},
		{"open quote", "a,b\n1,2\n3,\"4\n5,6\n", table.Config{}, 1, "record on line 3"},
		{"truncated gzip", cut[:len(cut)-9], table.Config{}, 20, "after line 21: the file is truncated: copy it again"},
		{"damaged gzip", cut[:len(cut)-8] + "12345678", table.Config{}, 20, "after line 21: gzip: invalid checksum: copy the file again"},
		{"truncated in its head", cut[:7], table.Config{}, 0, "the file is truncated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, "a,b\n1,2\n", tt.content)
			s, err := table.StreamCSV(filepath.Join(dir, "*.csv"), tt.config)
			if err != nil {
				t.Fatal(err)
			}
			if rows, err := rowsOf(s, 0, 0); err != nil || len(rows) != 1 {
				t.Errorf("the first file: %v, %v", rows, err)
			}
			for skip := range tt.rows + 1 {
				rows, err := rowsOf(s, 1, skip)
				if err == nil || !strings.HasPrefix(err.Error(), "table: "+filepath.Join(dir, "1.csv: ")) || !strings.Contains(err.Error(), tt.want) || len(rows) != tt.rows-skip {
					t.Errorf("after %d: %d rows, %v; want %d and %q", skip, len(rows), err, tt.rows-skip, tt.want)
				}
			}
		})
	}
}

// TestStreamRefuses: what is wrong with the pattern, the first file or the configuration is an
// error before the training.
func TestStreamRefuses(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		config  table.Config
		want    string
	}{
		{"{0..1}.csv", table.Config{}, "1.csv: no such file"},
		{"0.csv", table.Config{Labels: []string{"price"}}, `0.csv: it has no column "price", only ["a" "b"]`},
		{"0.csv", table.Config{Missing: map[string]float32{"a": float32(math.Inf(1))}}, "must be finite"},
	} {
		if _, err := table.StreamCSV(filepath.Join(write(t, "a,b\n1,2\n"), tt.pattern), tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

// TestStreamChanged: a file that changes is an error.
func TestStreamChanged(t *testing.T) {
	path := filepath.Join(write(t, "a,b\n1,2\n"), "0.csv")
	s, err := table.StreamCSV(path, table.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("a,b\n1,2\n3,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rowsOf(s, 0, 0); err == nil || !strings.Contains(err.Error(), "0.csv has changed") {
		t.Errorf("got %v", err)
	}
}

// TestStreamCloses: a stream that is no longer read has no open files.
func TestStreamCloses(t *testing.T) {
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.StreamCSV(filepath.Join(write(t, compressedtest.Gzip(t, "a\n1\n2\n")), "0.csv"), table.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		for _, err := range s.Read(0, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if after, err := os.ReadDir("/proc/self/fd"); err != nil || len(after) > len(before)+20 {
		t.Errorf("%d files are open, %d before: %v", len(after), len(before), err)
	}
}
