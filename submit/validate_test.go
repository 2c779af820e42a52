package submit

import (
	"reflect"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

func valid() JobSpec {
	return JobSpec{Name: "x", Nodes: 1, TasksPerNode: 1, RunDir: rundir.At("/runs/x"), Cells: []rundir.Cell{{Name: "train"}}}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*JobSpec)
		want   string
	}{
		{"least", func(*JobSpec) {}, ""},
		{"no nodes", func(s *JobSpec) { s.Nodes = 0 }, "--nodes=0: must be at least 1"},
		{"negative tasks", func(s *JobSpec) { s.TasksPerNode = -2 }, "--tasks-per-node=-2: must be at least 1"},
		{"negative CPUs", func(s *JobSpec) { s.CPUsPerTask = -1 }, "--cpus-per-task=-1: must be at least 0"},
		{"negative GPUs", func(s *JobSpec) { s.GPUs.Count = -1 }, "--gpus-per-node=-1: must be at least 0"},
		{"two mistakes", func(s *JobSpec) { s.Nodes, s.Mem = 0, "much" }, "--nodes=0: must be at least 1\n" + `--mem="much": not an amount of memory; give megabytes, or a number with K, M, G or T, such as 8G`},
		{"newline in a directive's value", func(s *JobSpec) { s.Partition = "a\nb" }, `--partition="a\nb": has the control character '\n'; give a value on one line`},
		{"newline in the run root", func(s *JobSpec) { s.RunDir = rundir.At("/a\nb") }, `--run-root="/a\nb": has the control character '\n'; give a value on one line`},
		{"hostile name is fine", func(s *JobSpec) { s.Name = `-x "a" 'b' $(c) é` }, ""},
		{"devices", func(s *JobSpec) { s.Devices = "0" }, `--devices="0": give a number of at least 1, or all`},
		{"all devices", func(s *JobSpec) { s.Devices = "all" }, ""},
		{"more ranks than GPUs", func(s *JobSpec) {
			s.Nodes, s.TasksPerNode, s.Platform, s.GPUs = 2, 4, "cuda", GPUs{Count: 2, Kind: "a100"}
		}, "--tasks-per-node=4 with --gpus-per-node=a100:2: each rank needs a GPU of its own; request as many GPUs as tasks, or train on CPUs with --platform=cpu"},
		{"platform", func(s *JobSpec) { s.Platform = "tpu" }, `--platform="tpu": give cpu or cuda`},
		{"env's name", func(s *JobSpec) { s.Env = map[string]string{"A B": "c"} }, `--env="A B=c": "A B" is not the name of an environment variable; give NAME=VALUE with letters, digits and _ in NAME`},
		{"env's value may have newlines", func(s *JobSpec) { s.Env = map[string]string{"A": "b\nc"} }, ""},
		{"env of the scheduler", func(s *JobSpec) { s.Env = map[string]string{"SLURM_CPU_BIND": "none"} }, "--env SLURM_CPU_BIND: SLURM sets this variable itself, and the ranks rely on it; give the value to your programs under another name"},
		{"env of srun", func(s *JobSpec) { s.Env = map[string]string{"PMI_RANK": "0"} }, "--env PMI_RANK: the MPI launcher sets this variable itself, and the ranks rely on it; give the value to your programs under another name"},
		{"env of submit", func(s *JobSpec) { s.Env = map[string]string{"GONBATCH_RUN_DIR": "/x"} }, "--env GONBATCH_RUN_DIR: submit sets this variable itself, and the ranks rely on it; give the value to your programs under another name"},
		{"env that bash keeps", func(s *JobSpec) { s.Env = map[string]string{"UID": "7"} }, "--env UID: bash sets this variable itself, and the ranks rely on it; give the value to your programs under another name"},
		{"%env of the scheduler", func(s *JobSpec) { s.Cells[0].Env = map[string]string{"SLURM_CONF": "/x"} }, "%env SLURM_CONF: SLURM sets this variable itself, and the ranks rely on it; give the value to your programs under another name"},
		{"env of the script's old variables", func(s *JobSpec) { s.Env = map[string]string{"rank": "1", "stop": "1", "start": "5", "finished": "x"} }, ""},
		{"env of the library", func(s *JobSpec) {
			s.Env = map[string]string{"GONBATCH_STUCK_TIMEOUT": "90s", "OMPI_MCA_btl": "tcp,self"}
		}, ""},
		{"secret", func(s *JobSpec) { s.Secrets = []string{"API_KEY"} }, ""},
		{"secret with a value", func(s *JobSpec) { s.Secrets = []string{"API_KEY=123"} }, "--secret API_KEY=...: give the name only, which takes the value from your environment: export API_KEY=... and --secret API_KEY"},
		{"secret that is no name", func(s *JobSpec) { s.Secrets = []string{"API KEY"} }, `--secret="API KEY": not the name of an environment variable; give one with letters, digits and _`},
		{"secret of the scheduler", func(s *JobSpec) { s.Secrets = []string{"SLURM_JWT"} }, "--secret SLURM_JWT: SLURM sets this variable itself, and the ranks rely on it; export the value under another name"},
		{"secret and env", func(s *JobSpec) { s.Secrets, s.Env = []string{"A"}, map[string]string{"A": "1"} }, "--secret A: --env sets it too, which writes the value into the run directory; give one of them"},
		{"GPU type", func(s *JobSpec) { s.GPUs = GPUs{2, "a100_80gb"} }, ""},
		{"no GPU type", func(s *JobSpec) { s.GPUs = GPUs{2, "a 100"} }, `--gpus-per-node: "a 100" is not a type of GPU; give a number, or TYPE:NUMBER, such as a100:4`},
		{"module", func(s *JobSpec) { s.Modules = []string{"a b"} }, `--module="a b": give one module, such as openmpi/4.1; repeat --module for more`},
		{"empty setup", func(s *JobSpec) { s.Setup = []string{" "} }, `--setup=" ": give a shell command`},
		{"no cell", func(s *JobSpec) { s.Cells = nil }, "nothing to run: the job has no cell"},
		{"cell twice", func(s *JobSpec) { s.Cells = append(s.Cells, s.Cells[0]) }, `cell "train": two cells have that name`},
		{"cell's name", func(s *JobSpec) { s.Cells[0].Name = "../x" }, `cell "../x": a name has letters, digits, _, . and - only, and no leading dash or dot`},
		{"restarts", func(s *JobSpec) { s.MaxRestarts = -1 }, "--max-restarts=-1: must be at least 0 (0 means never)"},
		{"a lead of nothing", func(s *JobSpec) { s.SignalLead = time.Millisecond }, "--signal-lead=1ms: give at least 1s, such as 5m"},
		{"a lead longer than the limit", func(s *JobSpec) { s.Time, s.SignalLead = "5", 5*time.Minute }, "--signal-lead=5m0s: must be shorter than the time limit, --time=5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := valid()
			tc.change(&spec)
			got := ""
			if err := spec.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Validate: %s\nwant      %s", got, tc.want)
			}
		})
	}
}

// TestValidTime: the wanted values are sbatch 22.05's own answers.
func TestValidTime(t *testing.T) {
	for text, want := range map[string]bool{
		"5": true, "5:30": true, "1:2:3": true, "1:70:90": true, "1-2": true, "1-2:3": true, "1-2:3:4": true, "0-0:70": true,
		"0": true, "UNLIMITED": true, "infinite": true,
		"1:2:3:4": false, "1h": false, "1.5": false, " 5": false, "1-2:3:4:5": false, ":5": false, "5:": false, "1:2:": false, "+5": false,
		"1-": false, "-5": false, "five": false, "5\n": false,
	} {
		if got := validTime(text); got != want {
			t.Errorf("validTime(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestValidateMem(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "100": true, "100K": true, "100k": true, "1G": true, "1GB": true, "1T": true, "0": true,
		"1Gi": false, "1.5G": false, "-1": false, "1P": false, "G": false, "1 G": false,
	} {
		if err := validateMem(text); (err == nil) != want {
			t.Errorf("validateMem(%q) = %v, want good: %v", text, err, want)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	for text, want := range map[string]string{
		"5": "5m0s", "5:30": "5m30s", "1:2:3": "1h2m3s", "1-2": "26h0m0s", "1-2:3": "26h3m0s", "1-2:3:4": "26h3m4s",
		"0": "0s", "UNLIMITED": "0s", "": "0s", "1h": "0s",
	} {
		if got := TimeLimit(text); got.String() != want {
			t.Errorf("TimeLimit(%q) = %v, want %s", text, got, want)
		}
	}
}

func TestLead(t *testing.T) {
	for _, tc := range []struct {
		name, limit string
		given, want time.Duration
	}{
		{"no limit", "", 0, 90 * time.Second},
		{"long limit", "1:00:00", 0, 90 * time.Second},
		{"short limit", "2", 0, 30 * time.Second},
		{"shortest limit", "0:02", 0, time.Second},
		{"given", "1:00:00", 10 * time.Minute, 10 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := (JobSpec{Time: tc.limit, SignalLead: tc.given}).Lead(); got != tc.want {
				t.Errorf("Lead = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSpecIsKept(t *testing.T) {
	dir, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := JobSpec{Name: "x", Nodes: 2, TasksPerNode: 1, Env: map[string]string{"A": "two\nlines"}, SignalLead: time.Minute, RunDir: dir,
		Cells: []rundir.Cell{{Name: "train", Args: []string{"-x"}, Dir: "/data"}}}
	if err := WriteSpec(dir, want, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSpec(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ReadSpec = %+v, %v\nwant       %+v", got, err, want)
	}
}
