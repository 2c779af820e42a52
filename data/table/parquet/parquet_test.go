package parquet_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	library "github.com/parquet-go/parquet-go"

	"gonbatch/data/lane/lanetest"
	"gonbatch/data/table"
	"gonbatch/data/table/parquet"
)

// record is a row of a test's file.
type record struct {
	Float    float32  `parquet:"float"`
	Double   *float64 `parquet:"double,optional"`
	Int      int64    `parquet:"int,delta"`
	Unsigned uint32   `parquet:"unsigned"`
	Large    uint64   `parquet:"large"`
	Flag     bool     `parquet:"flag"`
	Cents    int64    `parquet:"cents,decimal(2:18)"`
	Bytes    [9]byte  `parquet:"bytes,decimal(3:20)"`
	Group    struct {
		Small *int8 `parquet:"small,optional"`
	} `parquet:"group"`
	Class  string    `parquet:"class,dict"`
	Time   time.Time `parquet:"time,timestamp"`
	List   []float32 `parquet:"list,list"`
	Binary [4]byte   `parquet:"binary"`

	thousandths int64 // Bytes has this number.
}

var classes = []string{"cat", "dog", "wolf"}

func randomRecord(random *rand.Rand) record {
	r := record{
		Float: float32(random.NormFloat64()), Int: random.Int64N(2000) - 1000, Unsigned: random.Uint32(), Large: random.Uint64(),
		Flag: random.IntN(2) == 0, Cents: random.Int64N(100000), Class: classes[random.IntN(3)], List: make([]float32, random.IntN(3)),
	}
	r.thousandths = int64(random.Uint64()) >> random.IntN(60)
	binary.BigEndian.PutUint64(r.Bytes[1:], uint64(r.thousandths))
	if r.thousandths < 0 {
		r.Bytes[0] = 0xff
	}
	if random.IntN(3) > 0 {
		r.Double = new(random.NormFloat64())
	}
	if random.IntN(3) > 0 {
		r.Group.Small = new(int8(random.IntN(256) - 128))
	}
	return r
}

// numbers are what a test expects of a row.
func (r record) numbers() []float32 {
	all := []float32{r.Float, -5, float32(r.Int), float32(r.Unsigned), float32(r.Large), 0, float32(float64(r.Cents) / 100), -6, float32(float64(r.thousandths) / 1000)}
	if r.Double != nil {
		all[1] = float32(*r.Double)
	}
	if r.Flag {
		all[5] = 1
	}
	if r.Group.Small != nil {
		all[7] = float32(*r.Group.Small)
	}
	return all
}

// encode writes records, with small pages and groups of rows.
func encode(t *testing.T, random *rand.Rand, records []record) []byte {
	t.Helper()
	var file bytes.Buffer
	codec := []library.WriterOption{
		library.Compression(&library.Uncompressed), library.Compression(&library.Snappy), library.Compression(&library.Zstd), library.Compression(&library.Gzip),
	}[random.IntN(4)]
	w := library.NewGenericWriter[record](&file, codec, library.PageBufferSize(200+random.IntN(3000)), library.DataPageVersion(1+random.IntN(2)))
	for len(records) > 0 {
		n := 1 + random.IntN(len(records))
		if _, err := w.Write(records[:n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		records = records[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

var config = table.Config{
	Inputs: []string{"float", "double", "int", "unsigned", "large", "flag", "cents", "group.small", "bytes"}, Class: "class", Classes: classes,
	Missing: map[string]float32{"double": -5, "group.small": -6},
}

// TestAgainstModel reads random files.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		var want []record
		for i := range 1 + random.IntN(3) {
			records := make([]record, random.IntN(1500))
			for i := range records {
				records[i] = randomRecord(random)
			}
			want = append(want, records...)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.parquet", i)), encode(t, random, records), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if len(want) == 0 {
			continue
		}
		ds, err := parquet.Open(filepath.Join(dir, "*.parquet"), config)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if ds.Len() != len(want) {
			t.Fatalf("seed %d: %d rows, want %d", seed, ds.Len(), len(want))
		}
		order := random.Perm(len(want))
		x, y, err := ds.Batch(order)
		if err != nil {
			t.Fatal(err)
		}
		values, labels := tensors.MustCopyFlatData[float32](x[0]), tensors.MustCopyFlatData[int32](y[0])
		for row, index := range order {
			if got := values[9*row:][:9]; !slices.Equal(got, want[index].numbers()) || classes[labels[row]] != want[index].Class {
				t.Fatalf("seed %d: row %d is %v, class %d, want %v, %s", seed, index, got, labels[row], want[index].numbers(), want[index].Class)
			}
		}
	}
}

// TestStream: a stream has the rows of random files, in order, however many are skipped, and lanes
// have each row of a pass once.
func TestStream(t *testing.T) {
	type row struct {
		ID float32 `parquet:"id"`
	}
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 5))
		dir := t.TempDir()
		var names []string
		var counts []int
		for file := range 1 + random.IntN(5) {
			n := random.IntN(40) + 1 - min(file, 1)
			var content bytes.Buffer
			w := library.NewGenericWriter[row](&content, library.MaxRowsPerRowGroup(1+random.Int64N(15)))
			for i := range n {
				if _, err := w.Write([]row{{float32(1000*file + i)}}); err != nil {
					t.Fatal(err)
				}
				names = append(names, fmt.Sprint(1000*file+i))
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.parquet", file)), content.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			counts = append(counts, n)
		}
		s, err := parquet.Stream(filepath.Join(dir, "*.parquet"), table.Config{})
		if err != nil {
			t.Fatal(err)
		}
		id := func(example any) string {
			x, _, err := s.Batch([]any{example})
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(tensors.MustCopyFlatData[float32](x[0])[0])
		}
		for file, n := range counts {
			for skip := range n + 2 {
				next := skip
				for example, err := range s.Read(file, 0, skip) {
					if err != nil || id(example) != fmt.Sprint(1000*file+next) {
						t.Fatalf("seed %d: row %d of file %d: %v", seed, next, file, err)
					}
					next++
				}
				if next != max(n, skip) {
					t.Fatalf("seed %d: file %d has %d rows after %d, want %d", seed, file, next-skip, skip, n-skip)
				}
			}
		}
		lanetest.Divide(t, s, seed, names, id)
	}
}

// TestStreamErrors: an error names the file, the row and the column, and comes after the rows
// before, whichever are skipped.
func TestStreamErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var records []record
	for i := range 30 {
		one := randomRecord(random)
		if one.Double = new(1.); i == 17 {
			one.Double = nil
		}
		records = append(records, one)
	}
	path := filepath.Join(t.TempDir(), "0.parquet")
	if err := os.WriteFile(path, encode(t, random, records), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parquet.Stream(path, table.Config{Inputs: []string{"double"}})
	if err != nil {
		t.Fatal(err)
	}
	for skip := range 18 {
		rows, failed := 0, error(nil)
		for _, err := range s.Read(0, 0, skip) {
			if failed = err; err == nil {
				rows++
			}
		}
		if failed == nil || rows != 17-skip || !strings.Contains(failed.Error(), `0.parquet: row 18: column "double": the value is missing`) {
			t.Errorf("after %d: %d rows, %v", skip, rows, failed)
		}
	}
	if _, err := parquet.Stream(path, table.Config{Comma: ';'}); err == nil || !strings.Contains(err.Error(), "are for CSV files") {
		t.Errorf("got %v", err)
	}
}

// TestLargeClasses: the numbers of classes may be as large as an int32, in columns of any numbers,
// and may be names of classes.
func TestLargeClasses(t *testing.T) {
	type product struct {
		Price float32 `parquet:"price"`
		Int   int64   `parquet:"int"`
		Float float64 `parquet:"float"`
	}
	numbers := []int64{7, 99_999, 1_000_000, 1_234_567, 2_000_000_000, math.MaxInt32}
	var names []string
	var products []product
	for _, n := range numbers {
		names, products = append(names, fmt.Sprint(n)), append(products, product{1, n, float64(n)})
	}
	path := filepath.Join(t.TempDir(), "products.parquet")
	if err := library.WriteFile(path, products); err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"int", "float"} {
		for _, classes := range [][]string{nil, names} {
			ds, err := parquet.Open(path, table.Config{Inputs: []string{"price"}, Class: column, Classes: classes})
			if err != nil {
				t.Errorf("%s, %d names: %v", column, len(classes), err)
				continue
			}
			_, labels, err := ds.Batch([]int{0, 1, 2, 3, 4, 5})
			if err != nil {
				t.Fatal(err)
			}
			for row, got := range tensors.MustCopyFlatData[int32](labels[0]) {
				want := int32(numbers[row])
				if classes != nil {
					want = int32(row)
				}
				if got != want {
					t.Errorf("%s, %d names: the class of row %d is %d, want %d", column, len(classes), row, got, want)
				}
			}
		}
	}
}

// TestLongNames: whole numbers that a float64 can't tell apart are different names of classes.
func TestLongNames(t *testing.T) {
	type user struct {
		Age float32 `parquet:"age"`
		ID  int64   `parquet:"id"`
		Key uint64  `parquet:"key"`
	}
	path := filepath.Join(t.TempDir(), "users.parquet")
	first := int64(1)<<53 + 1
	if err := library.WriteFile(path, []user{{1, first, uint64(first)}, {2, first + 1, uint64(first) + 1}, {3, -first, math.MaxUint64}}); err != nil {
		t.Fatal(err)
	}
	for column, names := range map[string][]string{"id": {fmt.Sprint(first), fmt.Sprint(first + 1), fmt.Sprint(-first)}, "key": {fmt.Sprint(first), fmt.Sprint(first + 1), "18446744073709551615"}} {
		ds, err := parquet.Open(path, table.Config{Inputs: []string{"age"}, Class: column, Classes: names})
		if err != nil {
			t.Fatal(err)
		}
		_, labels, err := ds.Batch([]int{0, 1, 2})
		if err != nil {
			t.Fatal(err)
		}
		if got := tensors.MustCopyFlatData[int32](labels[0]); !slices.Equal(got, []int32{0, 1, 2}) {
			t.Errorf("%s: the classes are %v", column, got)
		}
	}
	ds, err := parquet.Open(path, table.Config{Inputs: []string{"id"}, Labels: []string{"age"}})
	if err != nil {
		t.Fatal(err)
	}
	inputs, _, err := ds.Batch([]int{0})
	if err != nil {
		t.Fatal(err)
	}
	if got := tensors.MustCopyFlatData[float32](inputs[0])[0]; got != float32(first) {
		t.Errorf("as an input, the number is %g", got)
	}
}

func TestRefuses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	records := []record{randomRecord(random), randomRecord(random)}
	records[0].Double, records[1].Double = new(1.), nil
	file := encode(t, random, records)
	tests := []struct {
		name    string
		config  table.Config
		content []byte
		want    string
	}{
		{"time", table.Config{Inputs: []string{"time"}}, file, `0.parquet: column "time": values of type TIMESTAMP`},
		{"list", table.Config{Inputs: []string{"list.list.element"}}, file, `column "list.list.element": it is a list`},
		{"bytes", table.Config{Inputs: []string{"binary"}}, file, `column "binary": values of type FIXED_LEN_BYTE_ARRAY(4) can't be read`},
		{"text", table.Config{Inputs: []string{"class"}}, file, `row 1: column "class": "`},
		{"all columns", table.Config{}, file, `column "time": values of type TIMESTAMP`},
		{"null", table.Config{Inputs: []string{"double"}}, file, `0.parquet: row 2: column "double": the value is missing`},
		{"no such column", table.Config{Inputs: []string{"price"}}, file, `it has no column "price", only ["float" "double"`},
		{"for CSV", table.Config{Comma: ';'}, file, "are for CSV files"},
		{"empty", table.Config{}, nil, "0.parquet: "},
		{"text file", table.Config{}, []byte("a,b\n1,2\n"), "0.parquet: "},
		{"truncated", table.Config{}, file[:len(file)-1], "0.parquet: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "0.parquet")
			if err := os.WriteFile(path, tt.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := parquet.Open(path, tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestDamaged: a damaged file may be an error, but never a panic.
func TestDamaged(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	records := make([]record, 50)
	for i := range records {
		records[i] = randomRecord(random)
	}
	file := encode(t, random, records)
	path := filepath.Join(t.TempDir(), "0.parquet")
	failed := 0
	for range 500 {
		damaged := slices.Clone(file)
		for range 1 + random.IntN(4) {
			damaged[random.IntN(len(damaged))] = byte(random.Uint32())
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := parquet.Open(path, config); err != nil {
			failed++
		}
		if s, err := parquet.Stream(path, config); err == nil {
			for _, err := range s.Read(0, 0, random.IntN(60)) {
				if err != nil && !strings.Contains(err.Error(), "0.parquet: ") {
					t.Fatal(err)
				}
			}
		}
	}
	if failed < 50 {
		t.Errorf("only %d of 500 damaged files were noticed", failed)
	}
}

// TestDamagedMetadata: of these files, whose metadata is damaged, one of each seed has made the
// library panic, and those at the end have made it take gigabytes of memory.
func TestDamagedMetadata(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.parquet")
	for _, seed := range []uint64{86, 549} {
		random := rand.New(rand.NewPCG(seed, 99))
		records := make([]record, 1+random.IntN(60))
		for i := range records {
			records[i] = randomRecord(random)
		}
		file := encode(t, random, records)
		for range 80 {
			damaged := slices.Clone(file)
			for range 1 + random.IntN(3) {
				place := random.IntN(len(damaged))
				if random.IntN(2) == 0 {
					place = len(damaged) - 9 - random.IntN(min(len(damaged)-9, 1500))
				}
				damaged[place] = byte(random.IntN(256))
			}
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _ = parquet.Open(path, config)
		}
	}
	for _, length := range []uint32{1 << 31, math.MaxUint32, 13} {
		file := binary.LittleEndian.AppendUint32([]byte("PAR1...."), length)
		if err := os.WriteFile(path, append(file, "PAR1"...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := parquet.Open(path, config); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("it has 16 bytes, and its end says that its metadata has %d: the file is damaged", length)) {
			t.Errorf("metadata of %d bytes: %v", length, err)
		}
	}
}
