package build

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/bounded"
)

var (
	gonbPrefix = regexp.MustCompile(`(^.*main(_test)?\.go:(\d+):(\d+): )(.+)$`)
	gonbTrace  = regexp.MustCompile(`(^\s*)(.*main(?:_test)?\.go):(\d+)(.*)$`)
)

// endsGoNB reports whether GoNB 0.11.5 exits on a line of an error.
func endsGoNB(line string) bool {
	location, number := "", ""
	if m := gonbPrefix.FindStringSubmatch(line); m != nil {
		location, number = m[1], m[3]
	} else if m := gonbTrace.FindStringSubmatch(line); m != nil {
		location, number = m[2]+":"+m[3], m[3]
	} else {
		return false
	}
	if n, err := strconv.Atoi(number); err != nil || n > 1e9 {
		return true // The range of lines around it has a negative length.
	}
	words := strings.Split(location, ":")
	if len(words) < 3 || words[0] == "" {
		return false
	}
	column, err := strconv.Atoi(words[2])
	return err != nil || column < -1 || column == 0 || column > 1e6
}

// TestReadable: GoNB can parse any lines of output, and ordinary lines are unchanged.
func TestReadable(t *testing.T) {
	pieces := []string{
		"main.go", "main_test.go", "./", "/x/", ":", ":", ":", ": ", " ", "\t", "0", "1", "8", "12", "-5", "99999999999999999999", "10:00:00", "vet", "x", "main.go:8:12: ", "main.go:4",
	}
	random, dangers := rand.New(rand.NewPCG(3, 4)), 0
	for range 100_000 {
		line := ""
		for range 1 + random.IntN(9) {
			line += pieces[random.IntN(len(pieces))]
		}
		if endsGoNB(line) {
			dangers++
		}
		if got := readable([]byte(line)); endsGoNB(string(got)) {
			t.Fatalf("%q became %q, which ends GoNB", line, got)
		}
	}
	if dangers < 1000 {
		t.Errorf("only %d lines would have ended GoNB", dangers)
	}
	plain := "# gonb_1\n./main.go:9:39: undefined: nothing\n\t./main.go:5:5: other declaration of x\n/tmp/a b/main.go:3:1: expected x\nmain.go:4:2: no required module\n./main_test.go:7:1: y\n\n"
	if got := readable([]byte(plain)); string(got) != plain {
		t.Errorf("became %q", got)
	}
	if got, want := string(readable(fmt.Appendf(nil, "a: b: main.go:8: c\n"))), "a: b: main.go 8: c\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestInterruptedAtItsEnd: an interrupt that comes when main.go is hidden doesn't make the build
// fail, which would end GoNB.
func TestInterruptedAtItsEnd(t *testing.T) {
	const folder = "TEST_HIDE_MAIN"
	if dir := os.Getenv(folder); dir != "" {
		b := &builder{Options: Options{Dir: dir, Verb: []string{"build"}}}
		if err := b.hideMain(); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(os.Args[0], "-test.run=^TestInterruptedAtItsEnd$")
	build.Env = append(os.Environ(), folder+"="+dir)
	if out, err := bounded.CombinedOutput(build); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("main.go is not hidden: %v", err)
	}
}
