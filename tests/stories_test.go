package tests

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/submit/report"
	"gonbatch/tests/cluster"
	"gonbatch/tests/tmpfs"
)

// storyCells are cells that say what they do, in files of the run directory: when each rank began,
// in which start, when it was done, and whether another process was the same rank at that time.
var storyCells = []string{
	"!echo \"0 $GONBATCH_RESTARTS\" | tee -a \"$GONBATCH_RUN_DIR/began-prepare\" >> \"$GONBATCH_RUN_DIR/done-prepare\"",
	`func open(name string, flag int) *os.File {
	f, err := os.OpenFile(filepath.Join(os.Getenv("GONBATCH_RUN_DIR"), name), os.O_CREATE|os.O_RDWR|flag, 0o644)
	if err != nil {
		panic(err)
	}
	return f
}

func note(name, text string) {
	if _, err := fmt.Fprintln(open(name, os.O_APPEND), text); err != nil {
		panic(err)
	}
}

func work(cell string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1, syscall.SIGTERM)
	me := os.Getenv("SLURM_PROCID") + " " + os.Getenv("GONBATCH_RESTARTS")
	note("began-"+cell, me)
	if err := syscall.Flock(int(open("rank-"+os.Getenv("SLURM_PROCID"), 0).Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		note("overlap", cell+" "+me)
	}
	state, step := open("state-"+cell+"-"+os.Getenv("SLURM_PROCID"), 0), 0
	fmt.Fscan(state, &step)
	for ; step < 40; step++ {
		select {
		case <-told:
			os.Exit(75)
		case <-time.After(50 * time.Millisecond):
		}
		state.WriteAt(fmt.Appendf(nil, "%-20d\n", step), 0)
		if os.Getenv("SLURM_PROCID") == "0" {
			open("progress", 0).WriteAt(fmt.Appendf(nil, "%-20d\n", step), 0)
		}
	}
	note("done-"+cell, me)
}`,
	"%%\nwork(\"first\")",
	"%%\nwork(\"second\")",
}

// story is a job on a real cluster, and what happens to it.
type story struct {
	user
	c      *cluster.Cluster
	random *rand.Rand
	told   []string
}

func (s *story) note(format string, args ...any) {
	s.told = append(s.told, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// do runs a command of SLURM, or on a node. It may fail: the job may have ended.
func (s *story) do(name string, args ...string) {
	out, err := s.c.Run(name, args...)
	s.note("%s %s: %v %s", name, strings.Join(args, " "), err, strings.TrimSpace(out))
}

// happenings are what may happen to a job, by name.
var happenings = map[string]func(t *testing.T, s *story, job string){
	"cancelled by submit":    func(t *testing.T, s *story, job string) { s.submits(t, "cancel", job) },
	"cancelled by scancel":   func(_ *testing.T, s *story, job string) { s.do("scancel", job) },
	"requeued":               func(_ *testing.T, s *story, job string) { s.do("scontrol", "requeue", job) },
	"time limit near":        func(_ *testing.T, s *story, job string) { s.do("scancel", "--signal=USR1", "--batch", job) },
	"resumed while it runs":  func(t *testing.T, s *story, job string) { s.submits(t, "resume", job) },
	"a rank is killed":       func(_ *testing.T, s *story, _ string) { s.killOn("n2", "/bin/") },
	"rank 0 is killed":       func(_ *testing.T, s *story, _ string) { s.killOn("n1", "/bin/") },
	"a rank's parent dies":   func(_ *testing.T, s *story, _ string) { s.killOn("n2", "submit rank") },
	"the job's process dies": func(_ *testing.T, s *story, _ string) { s.killOn("n1", "submit job") },
	"srun dies":              func(_ *testing.T, s *story, _ string) { s.killOn("n1", "srun --nodes") },
	"suspended": func(_ *testing.T, s *story, job string) {
		s.do("scontrol", "suspend", job)
		s.pause(1000)
		s.do("scontrol", "resume", job)
	},
	"a node crashes": func(t *testing.T, s *story, _ string) {
		node := fmt.Sprint("n", 1+s.random.IntN(2))
		s.note("%s crashes: %v", node, s.c.Crash(node))
		s.pause(2000)
		if err := s.c.Boot(node); err != nil {
			t.Error(err)
		}
	},
	"the disk is full": func(t *testing.T, s *story, _ string) {
		filler := filepath.Join(s.folder, "runs", ".filler")
		fill(t, filler)
		s.pause(4000)
		s.note("there is room again: %v", os.Remove(filler))
	},
	"preempted": func(_ *testing.T, s *story, _ string) {
		s.do("srun", "--partition=high", "--nodes=2", "--exclusive", "--mpi=none", "sleep", "2")
	},
	"slurmd dies": func(t *testing.T, s *story, _ string) {
		node := fmt.Sprint("n", 1+s.random.IntN(2))
		s.note("slurmd on %s dies: %v", node, s.c.KillDaemon(node))
		s.pause(3000)
		if err := s.c.StartDaemon(node); err != nil {
			t.Error(err)
		}
	},
	"the controller is away": func(t *testing.T, s *story, _ string) {
		s.note("the controller stops: %v", s.c.StopController())
		s.pause(3000)
		if err := s.c.StartController(); err != nil {
			t.Error(err)
		}
	},
}

// submits runs a submit command, which may fail.
func (s *story) submits(t *testing.T, args ...string) {
	out, err := s.submit(t, args...)
	s.note("submit %s: %v %s", strings.Join(args, " "), err, strings.TrimSpace(out))
}

// killOn kills the run's processes on a node whose command line has a text.
func (s *story) killOn(node, text string) {
	_, err := s.c.On(node, "pkill", "-KILL", "-f", filepath.Join(s.folder, "runs")+".*"+text+"|"+text+".*"+filepath.Join(s.folder, "runs"))
	s.note("kill %q on %s: %v", text, node, err)
}

// pause waits up to some milliseconds.
func (s *story) pause(most int) {
	time.Sleep(time.Duration(s.random.IntN(most)) * time.Millisecond)
}

// report is what submit status says.
func (s *story) report(t *testing.T, run rundir.Dir) (r report.Run) {
	out, _ := s.submit(t, "status", "--json", run.Path()) // It is not JSON if it fails.
	_ = json.Unmarshal([]byte(out), &r)
	return r
}

// TestRandomStories: whatever happens to a job on a real cluster, no cell runs again after it
// succeeded, nothing is completed that did not run on all ranks, no two processes are the same rank
// at the same time, and resume always brings the run to its end.
func TestRandomStories(t *testing.T) {
	t.Parallel()
	for seed := range tier.Tries(60, 4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := &story{user: newUser(t), random: rand.New(rand.NewPCG(uint64(seed), 37))}
			tmpfs.Mount(t, filepath.Join(s.folder, "runs"), "size=256m")
			s.c = cluster.Start(t) // The nodes inherit the mount.
			plugins := t.TempDir() // The cells use no plugin, so it may be small.
			if err := os.WriteFile(filepath.Join(plugins, "pjrt_c_api_cpu_plugin.so"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			s.env = append(s.c.Env(), "GONBATCH_PLUGIN_DIR="+plugins)
			s.mustSubmit(t, "--nodes", "2", "--mpi", "none", "--max-restarts", fmt.Sprint(s.random.IntN(4)), s.write(t, "story.ipynb", storyCells...))
			run := s.run(t)
			t.Cleanup(func() {
				if t.Failed() {
					log, _ := os.ReadFile(run.SchedulerLog())
					t.Logf("%s\n%s", strings.Join(s.told, "\n"), log)
				}
			})
			names := slices.Sorted(maps.Keys(happenings))
			for range 1 + s.random.IntN(3) {
				s.pause(4000)
				what := names[s.random.IntN(len(names))]
				m, err := rundir.ReadManifest(run)
				if err != nil {
					t.Fatal(err)
				}
				s.note("--- %s", what)
				happenings[what](t, s, m.JobID)
			}
			s.finish(t, run)
			s.check(t, run)
		})
	}
}

// longestWait is longer than a job waits for nodes that SLURM believes to be busy, as after a crash
// of a node that is back before slurmctld has noticed.
const longestWait = 15 * time.Minute

// finish waits for the run's end, and resumes it until it is completed.
func (s *story) finish(t *testing.T, run rundir.Dir) {
	t.Helper()
	for range 12 {
		var r report.Run
		within(t, longestWait, "the run has ended", func() bool {
			if r = s.report(t, run); strings.Contains(r.Message, "held") {
				s.do("scontrol", "release", r.Job)
			}
			return r.Ended && len(r.OtherJobs) == 0
		})
		s.note("it is %s", r.Message)
		if r.State == "completed" {
			return
		}
		s.submits(t, "resume", "--mpi", "none", run.Path())
	}
	t.Fatal("it is never completed")
}

// check compares what the cells did with what the run says.
func (s *story) check(t *testing.T, run rundir.Dir) {
	t.Helper()
	if overlap, err := os.ReadFile(filepath.Join(run.Path(), "overlap")); err == nil {
		t.Errorf("two processes were the same rank: %s", overlap)
	}
	m, err := rundir.ReadManifest(run)
	if err != nil || len(m.Cells) != 3 {
		t.Fatalf("%+v, %v", m.Cells, err)
	}
	for i, cell := range []string{"prepare", "first", "second"} {
		began, done := lines(t, run, "began-"+cell), lines(t, run, "done-"+cell)
		var start int
		if _, err := fmt.Sscan(read(t, filepath.Join(run.Finished(), m.Cells[i].Name)), &start); err != nil {
			t.Error(err)
		}
		for _, line := range began {
			var rank, restart int
			if _, err := fmt.Sscan(line, &rank, &restart); err != nil || restart >= start {
				t.Errorf("cell %s succeeded in start %d, and rank %d ran again in start %d", cell, start, rank, restart+1)
			}
		}
		for rank := range 2 {
			if cell == "prepare" && rank == 1 {
				continue
			}
			if want := fmt.Sprint(rank, " ", start-1); !slices.Contains(done, want) {
				t.Errorf("cell %s counts as succeeded in start %d, and rank %d was not done then: %q", cell, start, rank, done)
			}
		}
	}
}

// lines returns the lines of a file in a run directory.
func lines(t *testing.T, run rundir.Dir, name string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(read(t, filepath.Join(run.Path(), name))), "\n")
}
