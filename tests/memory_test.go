package tests

import (
	"bufio"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonbatch/submit/store"
)

// outputsMB is the size of the outputs in the big notebook: go test ./tests -run BigNotebook -args
// -outputs-mb 500.
var outputsMB = flag.Int("outputs-mb", 200, "megabytes of outputs in TestBigNotebook's notebook")

// memoryLimit is how much memory reading a notebook may take.
const memoryLimit = 100 << 20

// TestBigNotebook checks that a notebook full of outputs is exported, checked and run in little
// memory, and copied whole.
func TestBigNotebook(t *testing.T) {
	u := newUser(t)
	path := filepath.Join(u.folder, "big.ipynb")
	writeBig(t, path, *outputsMB<<20)
	for _, args := range [][]string{
		{"export", "-o", "module", "big.ipynb"}, {"check", "big.ipynb"}, {"--local", "big.ipynb"},
	} {
		if peak := u.peakMemory(t, args...); peak > memoryLimit {
			t.Errorf("submit %s took %d MB, want at most %d", strings.Join(args, " "), peak>>20, memoryLimit>>20)
		} else {
			t.Logf("submit %s: %d MB", strings.Join(args, " "), peak>>20)
		}
	}
	run := u.run(t)
	if hashOf(t, path) != hashOf(t, run.Notebook()) {
		t.Error("the run directory's notebook is not the one that was submitted")
	}
	wantAll(t, read(t, run.RankLog(0)), "small\n")
}

// writeBig writes a notebook whose first cell has images and long lines as outputs, and whose
// second has many short lines.
func writeBig(t *testing.T, path string, size int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	image := base64.StdEncoding.EncodeToString(make([]byte, 3<<20))
	fmt.Fprint(w, `{"nbformat":4,"nbformat_minor":5,"metadata":{"kernelspec":{"name":"gonb","language":"go"}},"cells":[`+
		`{"cell_type":"code","id":"a","metadata":{},"execution_count":1,"source":"import \"fmt\"","outputs":[`)
	for done := 0; done < size/2; done += len(image) {
		fmt.Fprintf(w, `{"output_type":"display_data","metadata":{},"data":{"image/png":%q}},`, image)
	}
	fmt.Fprint(w, `{"output_type":"stream","name":"stdout","text":""}]},`+"\n"+
		`{"cell_type":"code","id":"b","metadata":{},"execution_count":2,"outputs":[{"output_type":"stream","name":"stdout","text":[`)
	line := `"` + strings.Repeat("loss 0.25 ", 8) + `\n",` + "\n"
	for done := 0; done < size/2; done += len(line) {
		fmt.Fprint(w, line)
	}
	fmt.Fprint(w, `""]}],"source":"%%\nfmt.Println(\"small\")"}]}`)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// peakLine matches the most memory that a process has used, in kB.
var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory runs a command and returns the most memory that it used, without the compilers that it
// starts.
func (u user) peakMemory(t *testing.T, args ...string) (peak int) {
	t.Helper()
	path, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = u.folder
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // Missing once it has ended.
		if m := peakLine.FindSubmatch(status); m != nil {
			if kB, err := strconv.Atoi(string(m[1])); err == nil {
				peak = max(peak, kB<<10)
			}
		}
		select {
		case err := <-ended:
			if err != nil || peak == 0 {
				t.Fatalf("submit %s: %v, peak %d\n%s", strings.Join(args, " "), err, peak, &out)
			}
			return peak
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func hashOf(t *testing.T, path string) string {
	t.Helper()
	hash, err := store.HashFile(path)
	ok(t, err)
	return hash
}
