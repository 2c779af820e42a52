package slurmtmpl

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

var update = flag.Bool("update", false, "write the golden files again")

// hostile is a value with everything that could confuse a shell or sbatch, except a newline.
const hostile = `-x 'q' "d" $(touch pwned) ` + "`id`" + ` \ # %j ; é网`

func minimal() submit.JobSpec {
	return submit.JobSpec{Name: "mnist", Nodes: 2, TasksPerNode: 1, RunDir: rundir.At("/runs/mnist-1"), Cells: []rundir.Cell{{Name: "train"}}}
}

func full() submit.JobSpec {
	return submit.JobSpec{
		Name: "mnist", Nodes: 2, TasksPerNode: 4, CPUsPerTask: 8, GPUs: submit.GPUs{Count: 4, Kind: "a100"}, Mem: "64G", Time: "1-12:00:00",
		Partition: "gpu,main", Account: "physics", QOS: "high", Constraint: "a100&nvlink",
		Env:     map[string]string{"OMP_NUM_THREADS": "8", "A": "1"},
		Secrets: []string{"API_KEY"},
		Modules: []string{"openmpi/4.1", "cuda"}, Setup: []string{"ulimit -l unlimited", "source env.sh"},
		Directives: []string{"--mail-type=END", "--exclusive", "--comment=two words"},
		MPI:        "pmix", MPILibrary: "libmpi.so.40", Platform: "cpu", Devices: "all",
		Cells: []rundir.Cell{
			{Name: "prepare", Args: []string{"-size", "3"}, Env: map[string]string{"STEP_ONLY": "1"}, Dir: "/data"},
			{Name: "shell-7", Shell: true, Once: true, Dir: "/data"},
			{Name: "train"},
		},
		MaxRestarts: 10, SignalLead: 5 * time.Minute,
		Args: []string{"-epochs", "2"}, RunDir: rundir.At("/runs/mnist-1"), WorkDir: "/home/ada/notebooks", DataDir: "/home/ada/.cache/gonbatch/data",
	}
}

// recorded returns a job that is recorded.
func recorded() submit.JobSpec {
	spec := minimal()
	spec.Record, spec.RunDir = true, rundir.At("/runs/it's $(x)")
	spec.Cells = append(spec.Cells, rundir.Cell{Name: "shell-7", Shell: true, Once: true})
	return spec
}

func hostileSpec() submit.JobSpec {
	return submit.JobSpec{
		Name: hostile, Nodes: 1, TasksPerNode: 1, Partition: hostile, Account: hostile, QOS: hostile, Constraint: hostile,
		Env: map[string]string{"V": hostile + "\nsecond line"}, Setup: []string{"echo \"open quote", "true # comment"},
		Directives: []string{"--comment=" + hostile}, MPILibrary: hostile,
		Cells:  []rundir.Cell{{Name: "main", Args: []string{hostile}, Env: map[string]string{"W": hostile}}},
		Args:   []string{"", "-n", "two\nlines", ":"},
		RunDir: rundir.At(`/runs/a 'b' "c" $(d) %j é#`), WorkDir: "/work dir/" + hostile, DataDir: "/data/" + hostile,
	}
}

func TestRenderGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		spec submit.JobSpec
	}{{"minimal", minimal()}, {"full", full()}, {"hostile", hostileSpec()}, {"recorded", recorded()}} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Render(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", tc.name+".sbatch")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Error(diff)
			}
			if again, _ := Render(tc.spec); !bytes.Equal(got, again) {
				t.Error("a second Render gave other bytes")
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t")
	for _, tc := range []struct {
		name, want string
		change     func(*submit.JobSpec)
		template   string
	}{
		{name: "injected directive", change: func(s *submit.JobSpec) { s.Name = "x\n#SBATCH --uid=0" }, want: `--name="x\n#SBATCH --uid=0": has the control character '\n'; give a value on one line`},
		{name: "backslash in path", change: func(s *submit.JobSpec) { s.RunDir = rundir.At(`/a\b`) }, want: `--run-root="/a\\b": has a backslash, which SLURM drops from the paths of logs; choose another folder`},
		{name: "no template", change: func(s *submit.JobSpec) { s.Template = file + ".none" }, want: `--template: open ` + file + `.none: no such file or directory`},
		{name: "template's syntax", template: "#!/bin/sh\n{{if}}", want: "--template: template: " + file + ":2: missing value for if"},
		{name: "template's field", template: "#!/bin/sh\n{{.Node}}", want: "batch script: template: " + file + ":2:2: executing \"" + file + "\" at <.Node>: can't evaluate field Node in type slurmtmpl.Data"},
		{name: "template without #!", template: "hello", want: `--template="` + file + `": the first line must begin with #!, or sbatch refuses the script`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := minimal()
			if tc.change != nil {
				tc.change(&spec)
			} else {
				spec.Template = file
				if err := os.WriteFile(file, []byte(tc.template), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if script, err := Render(spec); err == nil || err.Error() != tc.want {
				t.Errorf("error %v\nwant  %s\nscript %s", err, tc.want, script)
			}
		})
	}
}

func TestOwnTemplate(t *testing.T) {
	spec := minimal()
	spec.Template = filepath.Join(t.TempDir(), "t")
	if err := os.WriteFile(spec.Template, []byte("#!/bin/zsh\n{{range .Cells}}run {{quote .Name}}{{end}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Render(spec); err != nil || string(got) != "#!/bin/zsh\nrun train\n" {
		t.Errorf("Render = %q, %v", got, err)
	}
}

// fakeSrun records the values of variables and its arguments, each ended by a NUL, and fails if the
// program's name is "fails".
const fakeSrun = `#!/bin/bash
printf '%s\0' "$GONBATCH_CELL" "$GONBATCH_ENV_V" "$GONBATCH_ENV_W" "$@" >> "$RECORD"
[[ " $* " != *"/bin/fails "* ]] || exit 7
`

// fakeScontrol knows a running job.
const fakeScontrol = `#!/bin/bash
echo "   JobState=RUNNING Reason=None Dependency=(null)"
`

// runScript runs a rendered script with bash and a fake srun, and returns srun's record and the
// script's exit code.
func runScript(t *testing.T, spec submit.JobSpec) (record []string, code int, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"srun": fakeSrun, "scontrol": fakeScontrol} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := Render(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash")
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(script)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "RECORD="+filepath.Join(dir, "record"), "SLURM_JOB_ID=12", "SLURM_JOB_NODELIST=n1")
	out, err := bounded.CombinedOutput(cmd)
	t.Logf("%s", out)
	if err != nil {
		code = cmd.ProcessState.ExitCode()
	}
	data, err := os.ReadFile(filepath.Join(dir, "record"))
	if err == nil {
		record = strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	}
	return record, code, dir
}

// rankEnv gives the programs' variables their names, and rankShell starts a rank.
const (
	rankEnv   = `for gonbatch_name in "${!GONBATCH_ENV_@}"; do export "${gonbatch_name#GONBATCH_ENV_}=${!gonbatch_name}"; unset "$gonbatch_name"; done`
	rankShell = `gonbatch_end() { [ "$1" = 0 ] || (umask 077; echo "$SLURM_STEP_ID" > "$GONBATCH_STOPPED.failed"); exit "$1"; }
gonbatch_told=; trap gonbatch_told=yes USR1 TERM; ` + rankEnv + `; "$@"; gonbatch_code=$?
[ "$gonbatch_code" = 75 ] || gonbatch_end "$gonbatch_code"
[ -n "$gonbatch_told" ] || [ -e "$GONBATCH_STOPPED" ] || sleep 1 # The program may have got the signal first.
if [ -z "$gonbatch_told" ] && ! [ -e "$GONBATCH_STOPPED" ]; then echo ` + unasked + ` >&2; gonbatch_end 1; fi
if (umask 077; : > "$GONBATCH_STOPPED"); then exit 0; fi; gonbatch_end "$gonbatch_code"`
	unasked = "gonbatch: exit code 75 of a program that was not told to stop: it has failed"
)

func TestScriptPassesHostileValues(t *testing.T) {
	spec := hostileSpec()
	spec.Setup = []string{"true # comment"}
	root := t.TempDir()
	spec.RunDir = rundir.At(filepath.Join(root, `a 'b' "c" $(d) %j é#`))
	if err := os.Mkdir(spec.RunDir.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	got, code, dir := runScript(t, spec)
	want := []string{"main", hostile + "\nsecond line", hostile,
		"--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--mpi=none", "--kill-on-bad-exit=1", "--export=ALL", "--chdir=/work dir/" + hostile,
		"--open-mode=append", "--output=" + root + `/a 'b' "c" $(d) %%j é#/logs/rank-%t.log`,
		"/bin/bash", "-c", rankShell, "gonbatch", spec.RunDir.Program("main"), hostile, "", "-n", "two\nlines", ":"}
	if diff := cmp.Diff(want, got); diff != "" || code != 0 {
		t.Errorf("exit code %d, srun's arguments: %s", code, diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("a value was run as a command")
	}
	if status, err := os.ReadFile(spec.RunDir.ExitStatus()); err != nil || string(status) != "12 0\n" {
		t.Errorf("exit status %q, %v", status, err)
	}
}

func TestScriptEndsAtTheFirstFailure(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setup []string
		cells []string
		ran   []string
		code  int
	}{
		{name: "cell", cells: []string{"one", "fails", "three"}, ran: []string{"one", "fails"}, code: 7},
		{name: "setup", setup: []string{"(exit 3)"}, cells: []string{"one"}, code: 3},
		{name: "setup that is not shell", setup: []string{`echo "open`}, cells: []string{"one"}, code: 2},
		{name: "all well", setup: []string{"false; true"}, cells: []string{"one", "two"}, ran: []string{"one", "two"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := minimal()
			spec.RunDir = rundir.At(t.TempDir())
			spec.Setup, spec.Cells = tc.setup, nil
			for _, s := range tc.cells {
				spec.Cells = append(spec.Cells, rundir.Cell{Name: s})
			}
			record, code, _ := runScript(t, spec)
			var ran []string
			for i, word := range record {
				if strings.HasPrefix(word, "--nodes=") {
					ran = append(ran, record[i-3])
				}
			}
			if diff := cmp.Diff(tc.ran, ran); diff != "" || code != tc.code {
				t.Errorf("exit code %d, want %d; cells that ran: %s", code, tc.code, diff)
			}
		})
	}
}

// TestExportOfSecrets: the job's --export also names the secrets if it would otherwise leave them
// out.
func TestExportOfSecrets(t *testing.T) {
	for given, want := range map[string]string{
		"--export=ALL": "--export=ALL", "--export=ALL,A=1": "--export=ALL,A=1", "--export=NONE": "--export=K1,K2", "--export=NIL": "--export=K1,K2", "--export=A,B=2": "--export=A,B=2,K1,K2",
	} {
		spec := minimal()
		spec.Secrets, spec.Directives = []string{"K1", "K2"}, []string{given}
		lines, err := directives(spec)
		if err != nil || !slices.Contains(lines, want) {
			t.Errorf("%s: %v, %q, want %s", given, err, lines, want)
		}
	}
}

func TestQuoteDirective(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"plain", "1-12:00:00", "1-12:00:00"},
		{"empty", "", `""`},
		{"space", "a b", `"a b"`},
		{"quotes", `a"b'c`, `"a\"b'c"`},
		{"backslash", `a\b`, `"a\\b"`},
		{"comment sign", "a#b", `"a#b"`},
		{"dollar means nothing", "$(x)", `"$(x)"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := quoteDirective(tc.value); got != tc.want {
				t.Errorf("quoteDirective(%q) = %s, want %s", tc.value, got, tc.want)
			}
		})
	}
}
