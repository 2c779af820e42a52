package checkpoint_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gonbatch/checkpoint"
	"gonbatch/checkpoint/folder"
	"gonbatch/internal/tier"
)

// saved returns a folder with the checkpoints of steps 1 and 2 of a store.
func saved(t *testing.T) (*checkpoint.Dir, *checkpoint.Snapshot) {
	t.Helper()
	dir := open(t, checkpoint.Options{})
	s := take(t, allTypes(t))
	s.Ranks = [][]byte{{1, 2, 3}}
	for s.Step = 1; s.Step <= 2; s.Step++ {
		ok(t, dir.Save(s))
	}
	return dir, s
}

// passesOver checks that the checkpoint of step 2 is skipped in favor of step 1, and that the
// report names it.
func passesOver(t *testing.T, dir *checkpoint.Dir, what string) {
	t.Helper()
	var reports []string
	s, err := dir.Latest(func(message string) { reports = append(reports, message) })
	if err != nil || s == nil || s.Step != 1 {
		t.Fatalf("%s: read %+v, %v", what, s, err)
	}
	if len(reports) != 1 || !strings.Contains(reports[0], "step-00000002") || !strings.Contains(reports[0], "passed over") {
		t.Fatalf("%s: reported %q", what, reports)
	}
}

// damage changes a file while a function runs.
func damage(t *testing.T, path string, change func(content []byte) []byte, during func()) {
	t.Helper()
	content, err := os.ReadFile(path)
	ok(t, err)
	ok(t, os.WriteFile(path, change(append([]byte(nil), content...)), 0o644))
	during()
	ok(t, os.WriteFile(path, content, 0o644))
}

func filesOf(t *testing.T, dir *checkpoint.Dir) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir.Path(), folder.Name(2), "*"))
	ok(t, err)
	if len(paths) != 4 {
		t.Fatalf("files: %q", paths)
	}
	return paths
}

func TestTruncated(t *testing.T) {
	dir, _ := saved(t)
	for _, path := range filesOf(t, dir) {
		info, err := os.Stat(path)
		ok(t, err)
		for size := int64(0); size < info.Size(); size += 64 {
			what := fmt.Sprintf("%s cut to %d of %d bytes", filepath.Base(path), size, info.Size())
			damage(t, path, func(content []byte) []byte { return content[:size] }, func() { passesOver(t, dir, what) })
		}
		damage(t, path, func(content []byte) []byte { return append(content, 0) }, func() { passesOver(t, dir, path+" with a byte more") })
	}
	if s := latest(t, dir); s.Step != 2 {
		t.Errorf("undamaged, step %d is the newest", s.Step)
	}
}

// TestBitsFlipped flips one bit of every second or third byte of each file, one at a time.
func TestBitsFlipped(t *testing.T) {
	dir, _ := saved(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, path := range filesOf(t, dir) {
		info, err := os.Stat(path)
		ok(t, err)
		for i := random.Int64N(2); i < info.Size(); i += int64(tier.Tries(2, 6)) + random.Int64N(2) {
			bit := random.IntN(8)
			damage(t, path, func(content []byte) []byte { content[i] ^= 1 << bit; return content }, func() {
				passesOver(t, dir, fmt.Sprintf("%s with bit %d of byte %d flipped", filepath.Base(path), bit, i))
			})
		}
	}
}

func TestAllDamaged(t *testing.T) {
	dir, _ := saved(t)
	for step := range int64(2) {
		ok(t, os.Truncate(filepath.Join(dir.Path(), folder.Name(step+1), "model.safetensors"), 10))
	}
	s, err := dir.Latest(func(string) {})
	if s != nil {
		t.Errorf("read %+v", s)
	}
	contains(t, err, "none of the 2", "step-00000001", "step-00000002")
	all, err := checkpoint.List(dir.Path())
	ok(t, err)
	for _, info := range all {
		contains(t, info.Err, "10 bytes")
	}
}

// TestDamagedGoesAway checks that a damaged checkpoint doesn't count as one of those to keep, and
// doesn't stay forever.
func TestDamagedGoesAway(t *testing.T) {
	dir, s := saved(t)
	path := filepath.Join(dir.Path(), folder.Name(2), "model.safetensors")
	content, err := os.ReadFile(path)
	ok(t, err)
	content[len(content)-1] ^= 1
	ok(t, os.WriteFile(path, content, 0o666))
	passesOver(t, dir, "the last byte")
	s.Step = 3
	ok(t, dir.Save(s))
	steps(t, dir, 3, 2, 1)
	s.Step = 4
	ok(t, dir.Save(s))
	steps(t, dir, 4, 3)
}

func TestUnusual(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, step2 string)
		// want is the step that is read, report what is reported about others, or err the error.
		want     int64
		report   string
		err      string
		saveErr  string // When step 2 is saved again.
		replaced bool   // Step 2 can be saved again.
	}{
		{name: "another's folder", want: 1, report: "no checkpoint.json", saveErr: "already exists", prepare: func(t *testing.T, step2 string) {
			ok(t, os.RemoveAll(step2), os.Mkdir(step2, 0o777), os.WriteFile(filepath.Join(step2, "notes"), nil, 0o666))
		}},
		{name: "a file", want: 1, report: "not a directory", saveErr: "already exists", prepare: func(t *testing.T, step2 string) {
			ok(t, os.RemoveAll(step2), os.WriteFile(step2, nil, 0o666))
		}},
		{name: "a link to a checkpoint elsewhere", want: 2, replaced: true, prepare: func(t *testing.T, step2 string) {
			elsewhere := filepath.Join(t.TempDir(), "step-00000002")
			ok(t, os.Rename(step2, elsewhere), os.Symlink(elsewhere, step2))
		}},
		{name: "a link to nothing", want: 1, report: "no checkpoint.json", saveErr: "already exists", prepare: func(t *testing.T, step2 string) {
			ok(t, os.RemoveAll(step2), os.Symlink("nowhere", step2))
		}},
		{name: "a copy of another step", want: 1, report: "is of step 1", replaced: true, prepare: func(t *testing.T, step2 string) {
			ok(t, os.RemoveAll(step2), os.CopyFS(step2, os.DirFS(filepath.Join(filepath.Dir(step2), "step-00000001"))))
		}},
		{name: "a file is missing", want: 1, report: "no such file", replaced: true, prepare: func(t *testing.T, step2 string) {
			ok(t, os.Remove(filepath.Join(step2, "training.safetensors")))
		}},
		{name: "a pipe for a file", want: 1, report: "is not a file", replaced: true, prepare: func(t *testing.T, step2 string) {
			ok(t, os.Remove(filepath.Join(step2, "model.safetensors")), unix.Mkfifo(filepath.Join(step2, "model.safetensors"), 0o666))
		}},
		{name: "a folder for checkpoint.json", want: 1, report: "is not a file", replaced: true, prepare: func(t *testing.T, step2 string) {
			ok(t, os.Remove(filepath.Join(step2, "checkpoint.json")), os.Mkdir(filepath.Join(step2, "checkpoint.json"), 0o777))
		}},
		{name: "a newer version", err: "format 2, this program reads up to 1", replaced: true, prepare: func(t *testing.T, step2 string) {
			ok(t, os.WriteFile(filepath.Join(step2, "checkpoint.json"), newerManifest(t), 0o666))
		}},
		{name: "other names", want: 2, prepare: func(t *testing.T, step2 string) {
			for _, name := range []string{"step-3", "step-00000003.bak", "step-0000000x", "best", "step--0000003"} {
				ok(t, os.CopyFS(filepath.Join(filepath.Dir(step2), name), os.DirFS(step2)))
			}
		}, replaced: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, s := saved(t)
			tt.prepare(t, filepath.Join(dir.Path(), folder.Name(2)))
			var reports []string
			got, err := dir.Latest(func(message string) { reports = append(reports, message) })
			switch {
			case tt.err != "":
				contains(t, err, tt.err)
			case err != nil || got.Step != tt.want:
				t.Errorf("read %+v, %v; reported %q", got, err, reports)
			}
			if joined := strings.Join(reports, "\n"); (tt.report == "") != (joined == "") || !strings.Contains(joined, tt.report) {
				t.Errorf("reported %q, want %q", reports, tt.report)
			}
			s.Step = 2
			err = dir.Save(s)
			if tt.saveErr != "" {
				contains(t, err, tt.saveErr, "move it")
				return
			}
			ok(t, err)
			if got := latest(t, dir); got.Step != 2 {
				t.Errorf("saved again, step %d is the newest", got.Step)
			}
		})
	}
}
