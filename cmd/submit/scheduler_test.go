package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/local"
)

// TestSchedulerName: the command line overrides a file, and --local stands for a scheduler's name.
func TestSchedulerName(t *testing.T) {
	for _, tc := range []struct{ name, file, args, want string }{
		{name: "nothing", want: "slurm"},
		{name: "local", args: "--local", want: "local"},
		{name: "a name", args: "--scheduler local", want: "local"},
		{name: "a file", file: "scheduler: local", want: "local"},
		{name: "a file, but local", file: "scheduler: slurm", args: "--local", want: "local"},
		{name: "a file with local, but a name", file: "local: true", args: "--scheduler slurm", want: "slurm"},
		{name: "twice the same", args: "--local --scheduler local", want: "local"},
		{name: "two", args: "--local --scheduler slurm", want: "--local and --scheduler=slurm: give one of them"},
		{name: "an unknown one", args: "--scheduler lsf", want: `--scheduler="lsf": give one of slurm, local`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "submit.yaml"), []byte(tc.file+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			a := &app{Shell: submit.Shell{Err: &strings.Builder{}}, userConfigDir: dir}
			o, cmd := newSubmitOptions(), &cobra.Command{}
			o.addFlags(cmd.Flags())
			if err := cmd.Flags().Parse(strings.Fields(tc.args)); err != nil {
				t.Fatal(err)
			}
			if _, err := a.loadConfig(cmd, t.TempDir()); err != nil {
				t.Fatal(err)
			}
			got := ""
			if s, err := o.scheduler(a); err != nil {
				got = err.Error()
			} else {
				got = s.Name()
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// third is a batch system that runs a job at once, with the code that runs jobs on this machine.
// Its jobs have ids, and it refuses an option.
type third struct{ *local.Scheduler }

func (third) Name() string { return "third" }

func (third) Validate(spec submit.JobSpec) error {
	if spec.QOS != "" {
		return fmt.Errorf("--qos=%s: third has no qualities of service", spec.QOS)
	}
	return nil
}

func (third) Script(spec submit.JobSpec) ([]byte, error) {
	return fmt.Appendf(nil, "#!/bin/bash\n# %s: %d ranks\n", spec.Name, spec.Tasks()), nil
}

func (third) QueueCommand(spec submit.JobSpec) string { return "thirdsub " + spec.RunDir.Script() }

func (s third) Submit(ctx context.Context, spec submit.JobSpec) (submit.Job, error) {
	if _, err := s.Run(ctx, spec); err != nil {
		return submit.Job{}, err
	}
	return submit.Job{ID: "42", Dir: spec.RunDir}, nil
}

func (third) Status(_ context.Context, job submit.Job) (submit.Status, error) {
	if !rundir.IsFinished(job.Dir, "train") {
		return submit.Status{State: submit.Failed}, nil
	}
	return submit.Status{State: submit.Completed}, nil
}

// TestThirdScheduler: one line in the list is enough to make every command work with a scheduler.
func TestThirdScheduler(t *testing.T) {
	schedulers = append(slices.Clip(schedulers), func(s submit.Shell) submit.Scheduler { return third{local.New(s, nil)} })
	t.Cleanup(func() { schedulers = schedulers[:len(schedulers)-1] })
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	self, err := exec.LookPath("submit") // as testscript.Main installs it
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	notebook := `{"cells":[{"cell_type":"code","id":"a","metadata":{"tags":["train"]},"execution_count":null,"outputs":[],"source":"%%\nprintln(\"hello\")"}],
"metadata":{"kernelspec":{"name":"gonb","language":"go","display_name":"Go"}},"nbformat":4,"nbformat_minor":5}`
	if err := os.WriteFile("x.ipynb", []byte(notebook), 0o644); err != nil {
		t.Fatal(err)
	}
	call := func(code int, want string, words ...string) {
		t.Helper()
		var out, said strings.Builder
		a := newApp()
		a.Self = self
		a.Out, a.Err, a.Environ = &out, &said, append(a.Environ, "GONBATCH_SOURCE="+checkout)
		if got := execute(t.Context(), a, words); got != code || !strings.Contains(out.String()+said.String(), want) {
			t.Errorf("submit %q: exit code %d, want %d and %q\n%s%s", words, got, code, want, &out, &said)
		}
	}
	call(0, "# x: 6 ranks", "--scheduler", "third", "--nodes", "2", "--tasks-per-node", "3", "--dry-run", "x.ipynb")
	call(2, "--qos=fast: third has no qualities of service", "--scheduler", "third", "--qos", "fast", "x.ipynb")
	call(0, "queue it with:  thirdsub ", "--scheduler", "third", "--no-submit", "x.ipynb")
	call(0, "job 42: x on 1 node, 1 rank", "--scheduler", "third", "--platform", "cpu", "x.ipynb")
	call(0, `"scheduler":"third","job":"42"`, "status", "--json", "42")
	call(0, "hello", "logs", "42")
	call(0, "completed", "cancel", "42")
	call(1, "nothing left to do", "resume", "42")
}
