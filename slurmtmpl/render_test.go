package slurmtmpl

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
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
		Env: map[string]string{"V": hostile + "\nsecond line", "WINDOWS": "it's\r\na \\\r\n"}, Setup: []string{"true # comment", "for i in 1 2; do\n  echo $i\ndone"},
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
		{name: "template of Windows", template: "#!/bin/sh\r\n", want: `--template="` + file + `": has Windows line ends (\r\n), which sbatch refuses; convert the file with: sed -i 's/\r$//' FILE`},
		{name: "setup of Windows", change: func(s *submit.JobSpec) { s.Setup = []string{"a\r\nb"} }, want: `--setup="a\r\nb": has Windows line ends (\r\n), which bash takes for characters of the commands; end lines with \n`},
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

// TestShellcheck checks the scripts with shellcheck, at the level of warnings: a generated script
// need not follow the hints below.
func TestShellcheck(t *testing.T) {
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		machine.Lacks(t, "shellcheck is not on PATH: apt-get install shellcheck")
	}
	goldens, err := filepath.Glob("testdata/*.sbatch")
	if err != nil || len(goldens) < 3 {
		t.Fatalf("scripts: %v, %v", goldens, err)
	}
	out, err := bounded.CombinedOutput(exec.Command(path, append([]string{"--severity=warning"}, goldens...)...))
	if err != nil {
		t.Errorf("%v\n%s", err, out)
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
