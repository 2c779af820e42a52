package rundir

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var testTime = time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC)

func TestSlug(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"plain", "mnist", "mnist"},
		{"upper case", "MNIST", "mnist"},
		{"spaces and quotes", `my "best" net`, "my-best-net"},
		{"shell", "$(rm -rf /)`x`", "rm-rf-x"},
		{"newline", "a\nb", "a-b"},
		{"leading dashes", "--help", "help"},
		{"path", "../../etc/passwd", "etc-passwd"},
		{"unicode", "réseau 网络 2", "r-seau-2"},
		{"empty", "", "run"},
		{"nothing left", "网络", "run"},
		{"long", strings.Repeat("abcdefghi-", 9), "abcdefghi-abcdefghi-abcdefghi-abcdefghi"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Slug(tc.text); got != tc.want {
				t.Errorf("Slug(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "deep", "runs")
	d, err := Create(root, "My Net", testTime)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^my-net-20261121-101500-[0-9a-f]{4}$`).MatchString(d.Name()) {
		t.Errorf("name %q", d.Name())
	}
	if filepath.Dir(d.Path()) != root {
		t.Errorf("path %q is not in %q", d.Path(), root)
	}
	for _, folder := range []string{d.Sources(), filepath.Dir(d.Program("x")), d.Plugins(), d.Logs(), d.Checkpoints()} {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			t.Errorf("no folder %s: %v", folder, err)
		}
	}
}

func TestCreateAtOnce(t *testing.T) {
	root := t.TempDir()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range 50 {
		wg.Go(func() {
			d, err := Create(root, "x", testTime)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[d.Path()] {
				t.Errorf("%s was given twice", d.Path())
			}
			seen[d.Path()] = true
		})
	}
	wg.Wait()
}

func TestCreateRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Create(filepath.Join(file, "runs"), "x", testTime)
	want := "cannot write in the run root " + file + "/runs: mkdir " + file + ": not a directory (choose another folder on the shared file system with --run-root)"
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

func TestPaths(t *testing.T) {
	d := At("/runs/x")
	got := []string{d.Notebook(), d.Sources(), d.Program("train"), d.Script(), d.ExitStatus(), d.Logs(), d.RankLog(3),
		d.RankLogPattern("%t"), d.SchedulerLog(), d.Metrics(), d.Checkpoints(), d.Plugins(), d.ManifestPath()}
	want := []string{"/runs/x/notebook.ipynb", "/runs/x/sources", "/runs/x/bin/train", "/runs/x/job.sh",
		"/runs/x/exit-status", "/runs/x/logs", "/runs/x/logs/rank-3.log", "/runs/x/logs/rank-%t.log", "/runs/x/logs/scheduler.log",
		"/runs/x/metrics.jsonl", "/runs/x/checkpoints", "/runs/x/plugins", "/runs/x/manifest.json"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOpen(t *testing.T) {
	root := t.TempDir()
	d := newRun(t, root, "a", testTime, "7")
	if got, err := openDir(d.Path()); err != nil || got != d {
		t.Errorf("Open = %v, %v", got, err)
	}
	for name, path := range map[string]string{"missing": filepath.Join(root, "none"), "no manifest": root, "file": d.ManifestPath()} {
		if _, err := openDir(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not name %s", name, err, path)
		}
	}
}

func newRun(t *testing.T, root, name string, at time.Time, job string) Dir {
	t.Helper()
	d, err := Create(root, name, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Manifest{Name: d.Name(), JobID: job}).Write(d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestManifestRoundTrip(t *testing.T) {
	d, err := Create(t.TempDir(), "x", testTime)
	if err != nil {
		t.Fatal(err)
	}
	code := 3
	want := Manifest{
		Name: d.Name(), Notebook: File{Path: "a b.ipynb", SHA256: "00"}, Git: &Git{Commit: "abc", Dirty: true}, SourcesSHA256: "11",
		Cells:       []Cell{{Name: "train", SHA256: "22", Args: []string{"-x"}, Number: 4, ID: "id"}},
		CommandLine: []string{"submit", "a b.ipynb"}, Versions: map[string]string{"go": "go1.26"}, Options: map[string]any{"nodes": 2.0},
		Scheduler: "slurm", JobID: "12", Cluster: "c", State: "failed", Reason: "NonZeroExitCode", ExitCode: &code,
		Created: testTime, Submitted: &testTime, Ended: &testTime,
	}
	if err := want.Write(d); err != nil {
		t.Fatal(err)
	}
	got, err := ReadManifest(d)
	if err != nil {
		t.Fatal(err)
	}
	want.Format = manifestFormat
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadManifestRefused(t *testing.T) {
	for _, tc := range []struct{ name, content, want string }{
		{"not JSON", "{", "unexpected end of JSON input"},
		{"newer", `{"format": 99}`, "format 99, this version reads 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := At(t.TempDir())
			if err := os.WriteFile(d.ManifestPath(), []byte(tc.content), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadManifest(d); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	b := newRun(t, root, "beta", testTime, "7")
	a := newRun(t, root, "alpha", testTime.Add(time.Hour), "8")
	b2 := newRun(t, root, "beta", testTime.Add(2*time.Hour), "7")
	c := newRun(t, root, "Rate 0.5", testTime.Add(3*time.Hour), "9")
	d := newRun(t, root, "47layers", testTime.Add(4*time.Hour), "10")
	runs, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{b.Name(), a.Name(), b2.Name()}, []string{runs[0].Name(), runs[1].Name(), runs[2].Name()}); diff != "" {
		t.Errorf("List: %s", diff)
	}
	for _, tc := range []struct {
		name, want string
		found      Dir
		err        string
	}{
		{name: "name", want: b.Name(), found: b},
		{name: "job id", want: "8", found: a},
		{name: "a job id used again is the newest run", want: "7", found: b2},
		{name: "prefix", want: "alp", found: a},
		{name: "path", want: b.Path(), found: b},
		{name: "given name", want: "Rate 0.5", found: c},
		{name: "number that begins a name", want: "47", err: "no run in " + root + " has the job id 47: if you mean one of " + d.Name() + ", give more of its name"},
		{name: "prefix of several", want: "beta", err: `"beta" names 2 runs in ` + root + ": give one of " + b.Name() + ", " + b2.Name()},
		{name: "none", want: "99", err: `no run "99" in ` + root + ": give a job id or a run's name (`submit status` lists them), or name its folder with --run-root"},
		{name: "empty", want: "", err: `no run "" in ` + root + ": give a job id or a run's name (`submit status` lists them), or name its folder with --run-root"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Find(root, tc.want)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("error %v\nwant  %s", err, tc.err)
				}
				return
			}
			if err != nil || got != tc.found {
				t.Errorf("Find(%q) = %v, %v; want %v", tc.want, got, err, tc.found)
			}
		})
	}
}

func TestListOfNoRoot(t *testing.T) {
	if runs, err := List(filepath.Join(t.TempDir(), "none")); err != nil || len(runs) != 0 {
		t.Errorf("List = %v, %v", runs, err)
	}
}

func TestWriteFileAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two"} {
		if err := WriteFileAtomic(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("content %q, %v; want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := WriteFileAtomic(filepath.Join(path, "sub"), nil, 0o644); err == nil {
		t.Error("no error for a file below a file")
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFileAtomic(filepath.Join(dir, "d"), nil, 0o644); err == nil {
		t.Error("no error for a file in a folder's place")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
