package slurm

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// srunOnce is a fake srun that runs its command as one rank.
const srunOnce = `#!/bin/bash
while [[ $1 == --* ]]; do shift; done
SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 exec "$@"
`

// printEnvironment writes its environment to a file.
const printEnvironment = `#!/bin/bash
exec /usr/bin/env -0 > "$0.env"
`

// Parts of random values and setups.
var (
	pieces = []string{"a", " ", "'", `"`, "$(exit 9)", "`id`", `\`, "\n", "=", ";", "é网", "$PATH", "#", "*", "!", "\t", "\x01", "%s", "-n", "{a,b}", "~"}
	names  = []string{"rank", "stop", "start", "finished", "x", "PATH", "name", "value", "entry", "letter", "LD_LIBRARY_PATH", "SHELL", "code", "HOME", "A_1", "_a", "TERM"}
	setups = []string{"set -e", "set -u", "set -f", "set -o noclobber", "set -k", "IFS=e", "trap 'echo no' EXIT", "shopt -s nullglob dotglob", "say() { :; }", "export X1=\"$x'\"", "unset start",
		"export rank=\"$rank more\"", "f() { :; }; export -f f", "readonly stop", "y=not-exported", "set -- a b c", "export Z=$'new\\nline'", "export -n code", "set -o posix", "true || false", "umask 077"}
)

// TestRandomEnvironments: a program gets exactly the environment that a plain shell has after the
// user's variables and setup.
func TestRandomEnvironments(t *testing.T) {
	for seed := range 30 {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			spec := minimal()
			spec.RunDir, spec.Nodes, spec.Env = rundir.At(t.TempDir()), 1, map[string]string{}
			for range random.IntN(6) {
				var value strings.Builder
				for range random.IntN(6) {
					value.WriteString(pieces[random.IntN(len(pieces))])
				}
				spec.Env[names[random.IntN(len(names))]] = value.String()
			}
			if _, set := spec.Env["PATH"]; set {
				spec.Env["PATH"] = "/usr/bin:/bin:" + spec.Env["PATH"]
			}
			for range random.IntN(4) {
				spec.Setup = append(spec.Setup, setups[random.IntN(len(setups))])
			}
			got, want := ranEnvironment(t, spec), shellEnvironment(t, spec)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("env %q, setup %q: %s", spec.Env, spec.Setup, diff)
			}
		})
	}
}

// ranEnvironment returns the environment of a cell's program.
func ranEnvironment(t *testing.T, spec submit.JobSpec) map[string]string {
	t.Helper()
	s := &start{dir: t.TempDir(), spec: spec, programs: map[string]string{"train": printEnvironment}}
	if err := errors.Join(os.MkdirAll(filepath.Dir(spec.RunDir.Program("train")), 0o700), os.MkdirAll(spec.RunDir.Logs(), 0o700)); err != nil {
		t.Fatal(err)
	}
	s.write(t, "srun", srunOnce)
	s.write(t, "scontrol", scontrolFake)
	s.write(t, "state", "RUNNING Reason=None")
	if out, code := s.run(t, 0); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	got := environment(t, spec.RunDir.Program("train.env"))
	got["PATH"] = strings.TrimPrefix(got["PATH"], s.dir+":") // The fakes are in it.
	return got
}

// shellEnvironment returns the environment of a program in a plain shell.
func shellEnvironment(t *testing.T, spec submit.JobSpec) map[string]string {
	t.Helper()
	print := filepath.Join(t.TempDir(), "print")
	if err := os.WriteFile(print, []byte(printEnvironment), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/bash", "-c", strings.Join(append(slices.Clone(spec.Setup), `exec "$PRINT"`), "\n"))
	cmd.Env = append(os.Environ(), "PRINT="+print)
	for name, value := range spec.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := bounded.CombinedOutput(cmd); err != nil && len(spec.Setup) == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	return environment(t, print+".env")
}

// environment parses the output of "env -0", without the variables that differ on purpose.
func environment(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		all[name] = value
	}
	maps.DeleteFunc(all, func(name, _ string) bool {
		return strings.HasPrefix(name, "GONBATCH_") || strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "BOUNDED_") ||
			slices.Contains([]string{rundir.EnvXLAPath, rundir.EnvXLANoInstall, "PYTHONFAULTHANDLER", "PRINT", "_", "SHLVL", "PWD", "OLDPWD"}, name)
	})
	return all
}
