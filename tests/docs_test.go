package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
	"gonbatch/tests/page"
)

// TestDocs types the commands of the README and of the tour, as a reader with a cluster would, one
// page after the other. Only the notebook's epochs are shorter: TestLocalMNIST and TestSlurm check
// how well it trains.
func TestDocs(t *testing.T) {
	t.Parallel()
	r := newReader(t, cluster.Start(t))
	for _, name := range []string{"README.md", "docs/tour.md"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			for _, block := range page.Commands(t, name) {
				r.run(t, name, block)
			}
		})
	}
}

// reader is someone who types the commands of a page into a shell.
type reader struct {
	folder string
	env    []string
}

// newReader gives a reader a clone, and separate folders for what they install.
func newReader(t *testing.T, c *cluster.Cluster) reader {
	t.Helper()
	r := reader{folder: filepath.Join(t.TempDir(), "gonbatch")}
	if err := clone(page.Root(t), r.folder); err != nil {
		t.Fatal(err)
	}
	r.shorten(t)
	submit, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	r.env = append(os.Environ(), c.Env()...)
	r.env = append(r.env, "GOBIN="+bin, "PATH="+bin+":"+filepath.Dir(submit)+":"+os.Getenv("PATH"),
		"JUPYTER_DATA_DIR="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir(), "SUBMIT_CPUS_PER_TASK=1", "CI=")
	return r
}

// clone copies the files that git tracks or would add.
func clone(from, to string) error {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	names, err := list.Output()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // Deleted, but not committed yet.
		}
		if err != nil {
			return err
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// shorten makes an epoch of the example notebook 10 updates long, its validation and its
// predictions 2 batches, and its test 4.
func (r reader) shorten(t *testing.T) {
	t.Helper()
	path := filepath.Join(r.folder, "notebooks", "mnist.ipynb")
	const seed = `"\tSeed:      *seed,\n",`
	text := read(t, path)
	shorter := strings.Replace(text, seed, seed+` "\tLimitTrainBatches: 10, LimitValBatches: 2, LimitTestBatches: 4, LimitPredictBatches: 2,\n",`, 1)
	if shorter == text {
		t.Fatalf("the notebook has no line %s after which to set a limit", seed)
	}
	if err := os.WriteFile(path, []byte(shorter), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run types the commands of a block. RUN stands for the reader's newest run.
func (r reader) run(t *testing.T, name string, block page.Block) {
	t.Helper()
	for line := range strings.Lines(block.Script) {
		line = strings.ReplaceAll(line, "RUN", r.newest())
		cmd := exec.CommandContext(t.Context(), "bash", "-ec", line)
		cmd.Dir, cmd.Env = r.folder, r.env
		out, err := bounded.CombinedOutput(cmd)
		if err != nil {
			t.Fatalf("%s:%d: %s: %v\n%s", name, block.Line, line, err, out)
		}
		t.Logf("$ %s%s", line, out)
	}
}

// newest is the name of the newest run, or RUN if there is none yet.
func (r reader) newest() string {
	runs, err := rundir.List(filepath.Join(r.folder, "runs"))
	if err != nil || len(runs) == 0 {
		return "RUN"
	}
	return runs[len(runs)-1].Name()
}

// link matches a link or image that points to another file of the repository, or to a heading.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)\s]*)?\)`)

// TestLinks finds links in the project's pages to files and headings that do not exist.
func TestLinks(t *testing.T) {
	t.Parallel()
	root := page.Root(t)
	for _, name := range page.All(t) {
		for _, match := range link.FindAllStringSubmatch(page.Read(t, name), -1) {
			target, heading := filepath.Join(filepath.Dir(name), match[1]), match[2]
			if match[1] == "" {
				target = name
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if heading != "" && !hasHeading(page.Read(t, target), heading) {
				t.Errorf("%s: %s has no heading %s", name, target, heading)
			}
		}
	}
}

// testNames matches the tests in a file.
var testNames = regexp.MustCompile(`(?m)^func Test\w+`)

// named matches a go test command that names tests.
var named = regexp.MustCompile("go test \\./([a-z/]+) -run '?([^` ']+)")

// TestNamedTests finds go test commands in the project's pages that match no test.
func TestNamedTests(t *testing.T) {
	for _, name := range page.All(t) {
		for _, match := range named.FindAllStringSubmatch(page.Read(t, name), -1) {
			files, err := filepath.Glob(filepath.Join(page.Root(t), match[1], "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			var tests []string
			for _, file := range files {
				tests = append(tests, testNames.FindAllString(read(t, file), -1)...)
			}
			if !slices.ContainsFunc(tests, regexp.MustCompile(match[2]).MatchString) {
				t.Errorf("%s: %s: there is no such test", name, match[0])
			}
		}
	}
}

// notInAnchor matches the characters that GitHub drops from a heading to make its anchor.
var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// hasHeading reports whether a page has a heading with the anchor that GitHub gives it.
func hasHeading(text, anchor string) bool {
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " "); ok && strings.HasPrefix(line, "#") {
			title = notInAnchor.ReplaceAllString(strings.ToLower(title), "")
			if "#"+strings.ReplaceAll(title, " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}
