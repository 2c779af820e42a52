package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

var update = flag.Bool("update", false, "record GoNB's side again")

// load reads all notebooks.
func load(t *testing.T) []Case {
	t.Helper()
	cases, err := Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Fatalf("%d notebooks, want at least 60", len(cases))
	}
	return cases
}

// sampleOf is how many days it takes to record each notebook once.
const sampleOf = 15

// TestRecord runs notebooks with plain GoNB. With -update it runs all and records what they did.
// Without it, it runs every 15th, a different set each day, and compares with the record, to detect
// changes in GoNB.
func TestRecord(t *testing.T) {
	python, root := jupyter.Python(t), rootDir(t)
	gonb := GoNB{Python: python, Root: root, DataDir: t.TempDir()}
	if err := gonb.Install(); err != nil {
		t.Fatal(err)
	}
	today := time.Now().YearDay() % sampleOf
	for i, c := range load(t) {
		if c.NoGoNB != "" || !*update && i%sampleOf != today {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			got := observeGoNB(t, gonb, c)
			if *update {
				write(t, c.golden(), got)
				return
			}
			want, err := c.recorded()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(withoutFrames(want), withoutFrames(got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("GoNB differs from the record (-recorded +got); -update records it:\n%s", diff)
			}
		})
	}
}

// observeGoNB runs a notebook with GoNB. When recording, it tries again if GoNB did not name the
// cells in a stack trace.
func observeGoNB(t *testing.T, gonb GoNB, c Case) Observed {
	t.Helper()
	for try := 1; ; try++ {
		got, err := gonb.Observe(t.Context(), c, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		missed := slices.ContainsFunc(got.Cells, func(cell Cell) bool {
			return strings.Contains(cell.Stderr, "goroutine [") && !frameLine.MatchString(cell.Stderr)
		})
		if !*update || !missed || try == 5 {
			return got
		}
	}
}

// withoutFrames drops the kernel's own messages and the places in stack traces. GoNB sometimes
// misses these, because it looks for them in chunks of the stream.
func withoutFrames(o Observed) Observed {
	o.Cells = slices.Clone(o.Cells)
	for i := range o.Cells {
		o.Cells[i].Stderr = frameLine.ReplaceAllString(o.Cells[i].Stderr, "")
		o.Cells[i].Error = ""
	}
	return o
}

var frameLine = regexp.MustCompile(`(?m)^\tcell \d+ line \d+\n?`)

// TestDifferential runs every notebook with `submit --local` and compares with GoNB, cell by cell.
func TestDifferential(t *testing.T) {
	s := newSubmit(t)
	for _, c := range load(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			run, err := s.Submit(t.Context(), c, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if c.Refused != "" {
				wantRefused(t, c, run)
				return
			}
			if run.Dir.Path() == "" {
				t.Fatalf("%s: submit refused the notebook:\n%s", c.Title, run.Output)
			}
			compare(t, s, c, run)
		})
	}
}

func compare(t *testing.T, s Submit, c Case, run Run) {
	t.Helper()
	got, err := s.Observe(t.Context(), c, run.Dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gonb, err := c.recorded()
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.expected(gonb)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: submit differs from GoNB (-GoNB +submit):\n%s\nsubmit wrote:\n%s", c.Title, diff, run.Output)
	}
	wantSame(t, got, run)
	if !strings.Contains(run.Output, c.Message) {
		t.Errorf("want %q in what submit wrote:\n%s", c.Message, run.Output)
	}
}

// wantSame checks that the run did what its programs do when run one by one.
func wantSame(t *testing.T, got Observed, run Run) {
	t.Helper()
	last := Cell{}
	for _, cell := range got.Cells {
		if cell.Status != NotRun {
			last = cell
		}
	}
	stopped := slices.ContainsFunc(got.Cells, func(c Cell) bool { return c.Status == NotRun }) || last.Number == got.Cells[len(got.Cells)-1].Number
	code := 0
	if stopped && last.Status == Failed {
		code = last.Code
	}
	if run.Code != code {
		t.Errorf("submit ended with exit code %d, its programs with %d:\n%s", run.Code, code, run.Output)
	}
	if diff := cmp.Diff(got.Files, run.Files, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the run's files differ from those of its programs (-programs +run):\n%s", diff)
	}
	shown, err := streams(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range got.Cells {
		if s, isCode := shown[cell.Number]; isCode && (s.Stdout != cell.Stdout || s.Stderr != cell.Stderr) {
			t.Errorf("cell %d: the run's executed notebook says\nstdout %q\nstderr %q\nand its program\nstdout %q\nstderr %q", cell.Number, s.Stdout, s.Stderr, cell.Stdout, cell.Stderr)
		}
	}
}

// wantRefused checks that submit rejected the notebook before anything ran.
func wantRefused(t *testing.T, c Case, run Run) {
	t.Helper()
	if run.Code == 0 || !strings.Contains(run.Output, c.Refused) {
		t.Errorf("exit code %d, want %q in the message:\n%s", run.Code, c.Refused, run.Output)
	}
	if run.Dir.Path() != "" || len(run.Files) > 0 {
		t.Errorf("something ran: %s, files %v", run.Dir.Path(), run.Files)
	}
}

// submitBinary builds the command once.
var submitBinary = sync.OnceValues(func() (string, error) {
	root, err := jupyter.Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "corpus-submit-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "submit")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-o", path, "./cmd/submit")
	cmd.Dir = root
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		return "", fmt.Errorf("go build ./cmd/submit: %w\n%s", err, out)
	}
	return path, nil
})

// newSubmit returns a submit command with its own cache, so that nothing from an earlier test is
// reused. Programs without XLA never load the plugin, so any file will do.
func newSubmit(t *testing.T) Submit {
	t.Helper()
	program, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	cache, plugins := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(plugins, "pjrt_c_api_cpu_plugin.so"), []byte("plugin"), 0o644); err != nil {
		t.Fatal(err)
	}
	goCache, err := bounded.Output(exec.CommandContext(t.Context(), "go", "env", "GOCACHE"))
	if err != nil {
		t.Fatal(err)
	}
	root := rootDir(t)
	return Submit{Program: program, Root: root, Env: append(os.Environ(),
		"XDG_CACHE_HOME="+cache, "GOCACHE="+strings.TrimSpace(string(goCache)), "GONBATCH_PLUGIN_DIR="+plugins, "GONBATCH_SOURCE="+root)}
}

func rootDir(t *testing.T) string {
	t.Helper()
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func write(t *testing.T, path string, o Observed) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	encoder := json.NewEncoder(file)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := errors.Join(encoder.Encode(o), file.Close()); err != nil {
		t.Fatal(err)
	}
}
