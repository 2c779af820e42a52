package compilecache_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"gonbatch/internal/compilecache"
)

// model is what a cache should do, one call after another: it has the programs in the cache, the
// most recently used one first, and which of them are damaged.
type model struct {
	order   []int
	damaged map[int]bool
}

// do reports whether a program will be compiled.
func (m *model) do(n int) bool {
	compile := !slices.Contains(m.order, n) || m.damaged[n]
	m.order = slices.Insert(slices.DeleteFunc(m.order, func(other int) bool { return other == n }), 0, n)
	delete(m.damaged, n)
	return compile
}

// prune keeps the programs that fit into size bytes.
func (m *model) prune(size int64, sizeOf func(int) int64) {
	for i, n := range m.order {
		if size -= sizeOf(n); size < 0 {
			for _, n := range m.order[i:] {
				delete(m.damaged, n)
			}
			m.order = m.order[:i]
			return
		}
	}
}

// TestRandomCalls: whatever happens to its entries, the cache compiles the programs that the model
// says, and returns each program as it was compiled.
func TestRandomCalls(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomCalls(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func randomCalls(t *testing.T, random *rand.Rand) {
	const programs = 12
	dir := t.TempDir()
	m := model{damaged: map[int]bool{}}
	caches := []*compilecache.Cache{open(t, dir, compilecache.Limit), open(t, dir, compilecache.Limit)}
	for step := range 150 {
		c, n := caches[random.IntN(len(caches))], random.IntN(programs)
		switch random.IntN(8) {
		case 0:
			if slices.Contains(m.order, n) && damage(t, random, pathOf(dir, n)) {
				m.damaged[n] = true
			}
		case 1:
			size := random.Int64N(100_000)
			m.prune(size, func(n int) int64 { return fileSize(t, pathOf(dir, n)) })
			if _, err := c.Prune(size); err != nil {
				t.Fatal(err)
			}
		default:
			want := m.do(n)
			if _, compiled, err := get(c, n); err != nil || compiled != want {
				t.Fatalf("step %d, program %d: compiled %v, %v; want %v", step, n, compiled, err, want)
			}
		}
		all, err := c.Programs()
		if err != nil || len(all) != len(m.order) {
			t.Fatalf("step %d: %d programs, %v; want %v", step, len(all), err, m.order)
		}
		for i, p := range all {
			if p.Key != keyOf(m.order[i]).String() {
				t.Fatalf("step %d: place %d is not program %d", step, i, m.order[i])
			}
		}
	}
}

func pathOf(dir string, n int) string { return filepath.Join(dir, keyOf(n).String()+".program") }

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// damage changes an entry in place, without changing its time. It reports whether there was one.
func damage(t *testing.T, random *rand.Rand, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return false
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	at := random.Int64N(info.Size())
	if random.IntN(2) == 0 {
		err = f.Truncate(at)
	} else {
		b := make([]byte, 1)
		if _, err = f.ReadAt(b, at); err == nil {
			b[0] ^= byte(1 + random.IntN(255))
			_, err = f.WriteAt(b, at)
		}
	}
	if err == nil {
		err = os.Chtimes(path, info.ModTime(), info.ModTime())
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Logf("damage: %v", err) // Another process has pruned it, or replaced it with a shorter one.
	}
	return true
}

// workers and workedPrograms are the numbers of processes and programs in TestRandomProcesses.
const (
	workers        = 4
	workedPrograms = 10
)

// work is a process that uses the cache args[0] at random, with the seed args[1]. It fails if it
// ever gets a wrong program.
func work(args []string) error {
	seed, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 2))
	c, err := compilecache.Open(args[0], 30_000, func(error) {})
	if err != nil {
		return err
	}
	for range 300 {
		if random.IntN(20) == 0 {
			_, err = c.Prune(random.Int64N(40_000))
		} else {
			_, _, err = get(c, random.IntN(workedPrograms))
		}
		if err != nil {
			return fmt.Errorf("worker %d: %w", seed, err)
		}
	}
	return nil
}

// TestRandomProcesses: processes that get, damage and remove programs concurrently never see a
// wrong one, and nothing fails.
func TestRandomProcesses(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error, workers)
	for i := range workers {
		cmd, _, _ := startChild(t, "work", dir, fmt.Sprint(i))
		go func() { done <- cmd.Wait() }()
	}
	random := rand.New(rand.NewPCG(7, 7))
	for left := workers; left > 0; {
		select {
		case err := <-done:
			if left--; err != nil {
				t.Error(err)
			}
		default:
			damage(t, random, pathOf(dir, random.IntN(workedPrograms)))
		}
	}
	c := open(t, dir, compilecache.Limit)
	for n := range workedPrograms {
		if _, _, err := get(c, n); err != nil {
			t.Error(err)
		}
		wantCompiled(t, c, n, false)
	}
	if _, err := c.Prune(0); err != nil {
		t.Error(err)
	}
	if all, err := c.Programs(); err != nil || len(all) > 0 {
		t.Errorf("left after all was pruned: %v, %v", all, err)
	}
}
