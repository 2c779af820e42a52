package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// TestOddPlaces checks that folders, notebooks, jobs and arguments with any name work on a cluster
// and on this machine.
func TestOddPlaces(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	const odd = `o dd 'q' "d" $(touch pwned) %j %% é网 #; & *`
	arguments := []string{"", "-dash", "two\nlines", odd, `back\slash`}
	for name, options := range map[string][]string{
		"cluster":      {"--nodes", "2", "--mpi", "none", "--follow"},
		"this machine": {"--local", "--tasks", "2"},
		"one rank":     {"--local"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, c.Env()...)
			u.folder = filepath.Join(u.folder, odd)
			if err := os.Mkdir(u.folder, 0o755); err != nil {
				t.Fatal(err)
			}
			notebook := u.write(t, "note\nbook "+odd+".ipynb", "%%\nfor _, arg := range flag.Args() {\n\tfmt.Printf(\"%q\\n\", arg)\n}\nfmt.Println(os.Getenv(\"ODD\"))\ndir, _ := os.Getwd()\nfmt.Println(dir)", "!pwd")
			args := append(append([]string{"--run-root", "ro ot " + odd, "--name", odd, "--env", "ODD=" + odd + "\nline two"}, options...), notebook, "--", "--")
			out := u.mustSubmit(t, append(args, arguments...)...)
			runs, err := rundir.List(filepath.Join(u.folder, "ro ot "+odd))
			if err != nil || len(runs) != 1 {
				t.Fatalf("runs %v, %v", runs, err)
			}
			// The command's own messages may come between the program's.
			wantAll(t, out, odd+"\n", u.folder+"\n")
			wantAll(t, read(t, runs[0].RankLog(0)), "\"\"\n\"-dash\"\n\"two\\nlines\"\n", odd+"\nline two\n", u.folder+"\n"+u.folder+"\n")
			wantAll(t, u.mustSubmit(t, "status", "--run-root", "ro ot "+odd), "completed")
			err = filepath.WalkDir(filepath.Dir(u.folder), func(path string, _ os.DirEntry, err error) error {
				if strings.HasSuffix(path, "/pwned") {
					t.Errorf("%s: a name was run as a command", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
