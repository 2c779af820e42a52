package logger_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gonbatch/logger"
	"gonbatch/tests/tmpfs"
)

// TestFullDisk: a file that a full disk has cut keeps all records before and after that are no
// errors, and can be opened again.
func TestFullDisk(t *testing.T) {
	for name, kind := range map[string]struct {
		open func(dir string) (logger.Logger, error)
		loss func(t *testing.T, dir string) map[int64]float64
	}{
		"JSON lines": {func(dir string) (logger.Logger, error) {
			return logger.NewJSONLines(filepath.Join(dir, "metrics.jsonl"))
		}, lossOfLines},
		"CSV":         {func(dir string) (logger.Logger, error) { return logger.NewCSV(filepath.Join(dir, "metrics.csv")) }, lossOfTable},
		"TensorBoard": {func(dir string) (logger.Logger, error) { return logger.NewTensorBoard(dir) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tmpfs.Mount(t, dir, "size=24k")
			l, err := kind.open(dir)
			if err != nil {
				t.Fatal(err)
			}
			others := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
			remove := func() {
				if err := os.Remove(others[0]); err != nil {
					t.Fatal(err)
				}
				others = others[1:]
			}
			for _, other := range others {
				if err := os.WriteFile(other, make([]byte, 8<<10), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, failed := map[int64]float64{}, 0
			for step := int64(1); step < 400; step++ {
				loss := 1 / float64(step)
				if err := l.Scalars(step, map[string]float64{"loss": loss}); err == nil {
					want[step] = loss
				} else if failed++; failed == 3 {
					remove()
				} else if failed > 3 {
					break
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if failed < 3 {
				t.Fatalf("the disk wasn't full: %d errors", failed)
			}
			if kind.loss == nil {
				if got := events(t, dir); got != len(want)+1 { // And the version of the format.
					t.Errorf("%d events, want %d", got, len(want)+1)
				}
			} else if got := kind.loss(t, dir); !maps.Equal(got, want) {
				t.Errorf("steps %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			remove()
			again, err := kind.open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// events counts the records of an event file, which must be whole:
// https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/lib/io/record_writer.h
func events(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), "events.") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for ; len(text) > 0; n++ {
			size := 16 + binary.LittleEndian.Uint64(text)
			if size > uint64(len(text)) {
				t.Fatalf("event %d of %d bytes has only %d", n, size, len(text))
			}
			text = text[size:]
		}
	}
	return n
}

// TestCloseMeanwhile: a file may be closed while another goroutine makes it wider, which replaces
// it.
func TestCloseMeanwhile(t *testing.T) {
	for round := range 100 {
		l, err := logger.NewCSV(filepath.Join(t.TempDir(), "metrics.csv"))
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			for step := range int64(20) {
				_ = l.Scalars(step, map[string]float64{fmt.Sprint("loss", step): 1}) // It may be closed.
			}
		})
		if err := l.Close(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		group.Wait()
	}
}

// TestPipe: what isn't a file is refused at once.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(string, ...logger.Option) error{
		func(p string, o ...logger.Option) error { _, err := logger.NewCSV(p, o...); return err },
		func(p string, o ...logger.Option) error { _, err := logger.NewJSONLines(p, o...); return err },
	} {
		if err := open(path); err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
			t.Errorf("got %v", err)
		}
	}
}
