package build

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/source"
	"gonbatch/submit/export"
)

// benchmarkNotebook returns a notebook that imports GoMLX and XLA, with n in its last cell.
func benchmarkNotebook(n int) *nbformat.Notebook {
	return cells("import (\n\t\"github.com/gomlx/compute\"\n\t_ \"github.com/gomlx/go-xla/compute/xla\"\n\t\"github.com/gomlx/gomlx/ml/train\"\n)\n\nvar loop *train.Loop",
		fmt.Sprintf("%%%%\nfmt.Println(%d, compute.List(), loop)", n))
}

// BenchmarkUnchanged measures an unchanged notebook: export, hash, and cache lookup.
func BenchmarkUnchanged(b *testing.B) { benchmark(b, func(int) int { return 0 }) }

// BenchmarkChangedCell measures a notebook with one changed cell.
func BenchmarkChangedCell(b *testing.B) {
	start := int(time.Now().UnixNano())
	benchmark(b, func(i int) int { return start + i + 1 })
}

// benchmark exports and builds benchmarkNotebook(change(i)).
func benchmark(b *testing.B, change func(i int) int) {
	ctx := context.Background()
	cache := b.TempDir()
	dir, err := source.Dir(ctx, source.Options{CacheDir: cache})
	if err != nil {
		b.Fatal(err)
	}
	build := func(n, i int) (exporting, building time.Duration) {
		start := time.Now()
		m, err := export.FromNotebook(benchmarkNotebook(n), export.Options{SourceDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		out := filepath.Join(cache, "module", fmt.Sprint(i))
		if err := m.Write(out); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if _, err := Build(ctx, out, m, Options{CacheDir: cache}); err != nil {
			b.Fatal(err)
		}
		return middle.Sub(start), time.Since(middle)
	}
	build(change(-1), -1)
	b.ResetTimer()
	var exporting, building time.Duration
	for i := range b.N {
		e, w := build(change(i), i)
		exporting += e
		building += w
	}
	b.ReportMetric(float64(exporting.Milliseconds())/float64(b.N), "export-ms/op")
	b.ReportMetric(float64(building.Milliseconds())/float64(b.N), "build-ms/op")
}
