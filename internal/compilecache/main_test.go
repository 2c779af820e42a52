package compilecache_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/internal/compilecache"
)

// The test program also acts as other processes that use a cache: childVariable has the command of
// such a process and its arguments.
const childVariable = "COMPILECACHE_CHILD"

var commands = map[string]func(args []string) error{"hold": hold, "compile": compileOnce, "work": work}

func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv(childVariable))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	if err := commands[words[0]](words[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child starts a process that runs a command, and returns it with its output.
func child(t *testing.T, words ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd, _, out := startChild(t, words...)
	return cmd, out
}

// startChild is child, and also returns the process's input.
func startChild(t *testing.T, words ...string) (*exec.Cmd, io.Closer, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join(words, " "))
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, in, bufio.NewReader(out)
}

// open opens a cache that must not give any warning.
func open(t testing.TB, dir string, limit int64) *compilecache.Cache {
	t.Helper()
	c, err := compilecache.Open(dir, limit, func(err error) { t.Errorf("warning: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keyOf and programOf return the key and the compiled form of program n. Programs differ in size.
func keyOf(n int) compilecache.Key {
	return compilecache.NewHash().Add("number", strconv.AppendInt(nil, int64(n), 10)).Key()
}

func programOf(n int) []byte {
	random := rand.New(rand.NewPCG(uint64(n), 0))
	program := make([]byte, 1000*(n+1))
	for i := range program {
		program[i] = byte(random.Uint32())
	}
	return program
}

// get gets program n from the cache, and returns whether it had to be compiled.
func get(c *compilecache.Cache, n int) (program []byte, compiled bool, err error) {
	err = c.Do(keyOf(n), fmt.Sprint("program", n), func(entry []byte) error {
		program = slices.Clone(entry)
		return nil
	}, func() ([]byte, error) {
		program, compiled = programOf(n), true
		return program, nil
	})
	if err == nil && !slices.Equal(program, programOf(n)) {
		err = fmt.Errorf("program %d is another one: %d bytes, want %d", n, len(program), len(programOf(n)))
	}
	return program, compiled, err
}

// wantCompiled gets a program and checks whether it was compiled.
func wantCompiled(t *testing.T, c *compilecache.Cache, n int, want bool) {
	t.Helper()
	if _, compiled, err := get(c, n); err != nil || compiled != want {
		t.Errorf("program %d: compiled %v, %v; want %v", n, compiled, err, want)
	}
}

// hold is a process that compiles program 0 in the cache args[0] forever.
func hold(args []string) error {
	c, err := compilecache.Open(args[0], compilecache.Limit, func(error) {})
	if err != nil {
		return err
	}
	return c.Do(keyOf(0), "held", func([]byte) error { return nil }, func() ([]byte, error) {
		fmt.Println("compiling")
		select {}
	})
}

// compileOnce gets program 0 from the cache args[0] when its input ends, and prints whether it was
// compiled.
func compileOnce(args []string) error {
	c, err := compilecache.Open(args[0], compilecache.Limit, func(error) {})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	_, compiled, err := get(c, 0)
	fmt.Println("compiled", compiled)
	return err
}
