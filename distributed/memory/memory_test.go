package memory

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	seeds = 2
	mib   = 1 << 20
)

// usage is what a test of testdata/blocks.c prints.
type usage struct {
	Live     int64 // The most bytes that were in use.
	Resident int64 // The memory of the process, in bytes.
	Faults   int   // Those of so many steps.
	Steps    int
}

// TestStaysSmall: whatever is between large blocks, the process has little more memory than is in
// use.
func TestStaysSmall(t *testing.T) {
	b := build(t)
	for seed := range seeds {
		if got := b.run(t, "mixed", seed); got.Resident > got.Live*5/4+32*mib {
			t.Errorf("seed %d: %d MB for %d MB in use", seed, got.Resident/mib, got.Live/mib)
		}
	}
}

// TestStepsHaveTheirMemory: a step that takes what the one before gave back faults no pages in, but
// those of a small block of 64 KiB that each one keeps.
func TestStepsHaveTheirMemory(t *testing.T) {
	b := build(t)
	for seed := range seeds {
		if got := b.run(t, "steps", seed); got.Faults > got.Steps*(64/4+4) {
			t.Errorf("seed %d: %d page faults in %d steps", seed, got.Faults, got.Steps)
		}
	}
}

// TestGivesMemoryBack: memory that is needed no longer leaves the process while it takes other.
func TestGivesMemoryBack(t *testing.T) {
	if got := build(t).run(t, "less", 1); got.Resident > got.Live/8 {
		t.Errorf("%d MB are left of %d MB", got.Resident/mib, got.Live/mib)
	}
}

// TestTrim: small blocks that are free leave the process, those between blocks in use too.
func TestTrim(t *testing.T) {
	if got := build(t).run(t, "small", 1); got.Resident > got.Live/8 {
		t.Errorf("%d MB are left of %d MB", got.Resident/mib, got.Live/mib)
	}
}

// TestHeapInHugePages: blocks that are too small for the pool are in huge pages too.
func TestHeapInHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Log("the kernel has no huge pages:", err)
		return
	}
	build(t).run(t, "heap", 1)
}

// TestBlocks: blocks are whole and apart from one another, whichever function they are of, in
// threads and forked processes, and when the kernel refuses memory.
func TestBlocks(t *testing.T) {
	b := build(t)
	for _, test := range []string{"calls", "kernel", "threads", "limit"} {
		t.Run(test, func(t *testing.T) {
			for seed := range seeds {
				b.run(t, test, seed)
			}
		})
	}
}

// TestPreloaded: small blocks are those of a malloc that the user preloads.
func TestPreloaded(t *testing.T) {
	b := build(t)
	library := filepath.Join(t.TempDir(), "preload.so")
	compile(t, library, "-shared", "-fPIC", "testdata/preload.c")
	b.environ = append(os.Environ(), "LD_PRELOAD="+library)
	b.run(t, "calls", 1)
}

// blocks is the program of testdata/blocks.c.
type blocks struct {
	program string
	environ []string
}

// build compiles the program with the pool, and with a library that uses memory before the program
// begins.
func build(t *testing.T) blocks {
	t.Helper()
	sources, err := filepath.Glob("*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	dir := t.TempDir()
	early := filepath.Join(dir, "libearly.so")
	compile(t, early, "-shared", "-fPIC", "testdata/early.c")
	b := blocks{program: filepath.Join(dir, "blocks")}
	compile(t, b.program, append(sources, "testdata/blocks.c", "-Wl,--no-as-needed", early, "-Wl,-rpath,"+dir, "-ldl")...)
	return b
}

// compile runs the C compiler. What it knows of malloc would leave out what the tests take.
func compile(t *testing.T, to string, args ...string) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	args = append([]string{"-O1", "-fno-builtin", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", to}, args...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// run runs one of the program's tests.
func (b blocks) run(t *testing.T, test string, seed int) usage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), b.program, test, fmt.Sprint(seed))
	cmd.Env, cmd.Stderr = b.environ, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s with seed %d: %v", test, seed, err)
	}
	var u usage
	if len(out) == 0 {
		return u
	}
	if err := json.Unmarshal(out, &u); err != nil {
		t.Fatalf("%s with seed %d: %v in %s", test, seed, err, out)
	}
	return u
}
