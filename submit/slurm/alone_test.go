package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gonbatch/internal/rundir"
)

// scontrolOther shows job 11 in the states listed in the file "others", one after another, with the
// script named in the file "script-path", and job 12 in the state in the file "state". The cluster
// west does not answer.
const scontrolOther = `#!/bin/bash
if [ "$1" = --clusters=west ]; then echo "error: no address of cluster west" >&2; exit 1; fi
if [ "$1" = --clusters=north ]; then shift; fi
state="$(cat state)"
if [ "$3" = 11 ]; then state="$(head -n 1 others)"; fi
echo "   JobState=$state Dependency=(null)"
echo "   Command=$(cat script-path)"
if [ "$3" = 11 ] && [ -e asked ]; then sed -i 1d others; rm asked; elif [ "$3" = 11 ]; then touch asked; fi
`

// TestAlone: a job does not begin while another job of the same run is running, and waits for one
// that is just ending.
func TestAlone(t *testing.T) {
	for _, tc := range []struct {
		name, starts, others, script, says string
		ended, runs                        bool
	}{
		{name: "the first", runs: true},
		{name: "started again", starts: "job 12 x\n", others: "RUNNING Reason=None\n", runs: true},
		{name: "beside another", starts: "job 11 x\n", others: "RUNNING Reason=None\n"},
		{name: "beside another that ends", starts: "job 11 x\n", others: "COMPLETING Reason=None\nCANCELLED Reason=None\n", runs: true},
		{name: "beside one that has ended", starts: "job 11 x\n", others: "FAILED Reason=None\n", runs: true},
		{name: "its id is another's", starts: "job 11 x\n", others: "RUNNING Reason=None\n", script: "/home/bob/job.sh", runs: true},
		{name: "beside one on another cluster", starts: "job 11 x north\n", others: "RUNNING Reason=None\n"},
		{name: "the other cluster doesn't know it", starts: "job 11 x north\n", others: "FAILED Reason=None\n", runs: true},
		{name: "the other cluster is silent", starts: "job 12 x west\n", says: "job 12 of the cluster west may still run in this run directory"},
		{name: "its end is recorded", starts: "job 11 x west\n", ended: true, runs: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStart(t)
			s.programs = map[string]string{"train": "#!/bin/bash\ntouch ran"}
			s.write(t, "scontrol", scontrolOther)
			s.write(t, "others", tc.others)
			if tc.script == "" {
				tc.script = s.spec.RunDir.Script()
			}
			s.write(t, "script-path", tc.script+"\n")
			if tc.starts != "" {
				if err := os.WriteFile(s.spec.RunDir.Starts(), []byte(tc.starts), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if tc.ended {
				if err := rundir.WriteExitStatus(s.spec.RunDir, "11", 1); err != nil {
					t.Fatal(err)
				}
			}
			if tc.says == "" {
				tc.says = "job 11 runs in this run directory: job 12 leaves it alone"
			}
			s.env = []string{"SLURM_CLUSTER_NAME=east"}
			out, code := s.run(t, 0)
			starts, err := rundir.ReadStarts(s.spec.RunDir)
			if err != nil {
				t.Fatal(err)
			}
			if last := starts[len(starts)-1].ID; s.has("ran") != tc.runs || (code == 0) != tc.runs || (starts[len(starts)-1] == (rundir.StartedJob{ID: "12", Cluster: "east"})) != tc.runs {
				t.Errorf("exit code %d, ran: %t, last start by job %s; want that it runs: %t\n%s", code, s.has("ran"), last, tc.runs, out)
			}
			if strings.Contains(out, tc.says) == tc.runs {
				t.Errorf("%q in:\n%s", tc.says, out)
			}
		})
	}
}

// TestNote: a start that SLURM ends records SLURM's state and reason, and the next start removes
// the record.
func TestNote(t *testing.T) {
	s := newStart(t)
	s.env = []string{"SLURM_CLUSTER_NAME=east"}
	s.write(t, "state", "COMPLETING Reason=TimeLimit")
	s.write(t, "forbidden", "no requeue")
	s.run(t, syscall.SIGTERM)
	if got, err := rundir.ReadEnding(s.spec.RunDir); err != nil || got != (rundir.Ending{JobID: "12", State: "COMPLETING", Reason: "TimeLimit"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if start, err := rundir.LastStart(s.spec.RunDir); err != nil || start != (rundir.StartedJob{ID: "12", Cluster: "east"}) {
		t.Errorf("%+v, %v", start, err)
	}
	s.write(t, "state", "RUNNING Reason=None")
	s.programs = map[string]string{"train": "#!/bin/bash\ntrue"}
	if _, code := s.run(t, 0); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(s.spec.RunDir.EndingPath()); err == nil {
		t.Error("the ending is still there")
	}
	if left, _ := filepath.Glob(s.spec.RunDir.EndingPath() + "*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestEndedBefore: a cell whose ranks have all recorded that they ended well does not run again if
// the job was lost before it could mark the cell, and requeued.
func TestEndedBefore(t *testing.T) {
	for _, tt := range []struct {
		name, job string
		codes     []int
		runs      bool
	}{
		{"all", "12", []int{0, 0}, false}, {"one is missing", "12", []int{0}, true}, {"one has failed", "12", []int{0, 1}, true}, {"of another job", "11", []int{0, 0}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStart(t)
			s.programs = map[string]string{"train": "#!/bin/bash\ntouch ran"}
			if err := os.WriteFile(s.spec.RunDir.Starts(), []byte("job "+tt.job+" x\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			for rank, code := range tt.codes {
				if err := (rundir.End{Rank: rank, Code: code}).Write(s.spec.RunDir, 1, "train"); err != nil {
					t.Fatal(err)
				}
			}
			out, code := s.run(t, 0)
			if code != 0 || s.has("ran") != tt.runs || !rundir.IsFinished(s.spec.RunDir, "train") {
				t.Errorf("exit code %d, ran: %t, want %t\n%s", code, s.has("ran"), tt.runs, out)
			}
		})
	}
}

// TestTwoBegin: of two jobs of a run that begin at the same time, one runs.
func TestTwoBegin(t *testing.T) {
	s := newStart(t)
	s.programs = map[string]string{"train": "#!/bin/bash\n[ $SLURM_PROCID = 0 ] || exit 0\necho $SLURM_JOB_ID >> ran; sleep 1"}
	s.write(t, "script-path", s.spec.RunDir.Script()+"\n")
	if err := os.WriteFile(s.spec.RunDir.Starts(), []byte("job 9 x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.write(t, "scontrol", "#!/bin/bash\nsleep 0.3\n[ $3 != 9 ] || exit 1\necho '   JobState=RUNNING Reason=None Dependency=(null)'\necho \"   Command=$(cat script-path)\"\n")
	s.stage(t) // Once: a script that runs cannot be written.
	other := *s
	other.env = []string{"SLURM_JOB_ID=13"}
	codes := make(chan int, 2)
	for _, one := range []*start{s, &other} {
		go func() {
			code := -1
			defer func() { codes <- code }() // Also if the run fails the test.
			_, code = one.runScript(t, 0)
		}()
	}
	if first, second := <-codes, <-codes; first+second != 1 {
		t.Errorf("exit codes %d and %d, want that one runs and one leaves it alone", first, second)
	}
	if ran, err := os.ReadFile(filepath.Join(s.dir, "ran")); err != nil || strings.Count(string(ran), "\n") != 1 {
		t.Errorf("ran: %q, %v", ran, err)
	}
}
