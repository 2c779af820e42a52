package tarset_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/data/tarset"
	"gonbatch/internal/machine"
)

// TestTool reads what the tar command writes, in all its formats.
func TestTool(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		machine.Lacks(t, "there is no tar command")
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	var want []sample
	for i := range 20 {
		s := sample{0, fmt.Sprintf("in/%s%02d", strings.Repeat("n", random.IntN(50)), i), map[string]string{}}
		for _, extension := range []string{"bin", "txt"} {
			s.members[extension] = strings.Repeat("x", random.IntN(3000))
			path := filepath.Join(dir, s.key+"."+extension)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(s.members[extension]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, s)
	}
	order := map[string]sample{}
	for _, s := range want {
		order[s.key] = s
	}
	for _, format := range []string{"v7", "ustar", "gnu", "oldgnu", "pax"} {
		command := exec.Command("tar", "--create", "--file", "0.tar", "--format", format, "--sort", "name", "in")
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			machine.Lacks(t, fmt.Sprintf("tar --format %s: %v: %s", format, err, out))
		}
		set, err := tarset.Open(filepath.Join(dir, "0.tar"), raw)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		sorted := make([]sample, set.Len())
		for i := range sorted {
			s, err := set.Sample(i)
			if err != nil {
				t.Fatal(err)
			}
			sorted[i] = order[s.Key]
		}
		if len(sorted) != len(want) {
			t.Errorf("%s: %d samples, want %d", format, len(sorted), len(want))
		}
		compare(t, set, sorted)
	}
}

// TestLinks refuses links in the place of samples, and takes what the command makes of them as the
// error says.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.bin"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Link(filepath.Join(dir, "a.bin"), filepath.Join(dir, "b.bin")), os.Symlink("a.bin", filepath.Join(dir, "c.bin"))); err != nil {
		t.Fatal(err)
	}
	for _, second := range []string{"b.bin", "c.bin"} {
		for _, options := range [][]string{nil, {"--dereference", "--hard-dereference"}} {
			command := exec.Command("tar", append(options, "--create", "--file", "0.tar", "a.bin", second)...)
			command.Dir = dir
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			set, err := tarset.Open(filepath.Join(dir, "0.tar"), raw)
			stream, streamErr := tarset.Stream(filepath.Join(dir, "0.tar"), raw)
			if streamErr == nil {
				_, streamErr = read(stream, 0, 0)
			}
			for _, err := range []error{err, streamErr} {
				if want := second + " is a link to a.bin: make the tar file with --dereference"; options == nil && (err == nil || !strings.Contains(err.Error(), want)) || options != nil && err != nil {
					t.Errorf("%s, %v: got %v", second, options, err)
				}
			}
			if options != nil && set.Len() != 2 {
				t.Errorf("%s: %d samples, want 2", second, set.Len())
			}
		}
	}
}

// TestSparse refuses the sparse files of the tar command.
func TestSparse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.bin")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"gnu", "posix"} {
		command := exec.Command("tar", "--create", "--sparse", "--file", "0.tar", "--format", format, "a.bin")
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			machine.Lacks(t, fmt.Sprintf("tar --sparse: %v: %s", err, out))
		}
		if info, err := os.Stat(filepath.Join(dir, "0.tar")); err != nil || info.Size() > 1<<19 {
			machine.Lacks(t, fmt.Sprintf("tar has found no holes: %v", err))
		}
		if _, err := tarset.Open(filepath.Join(dir, "0.tar"), raw); err == nil || !strings.Contains(err.Error(), "a.bin is a sparse file") {
			t.Errorf("%s: %v", format, err)
		}
	}
}
