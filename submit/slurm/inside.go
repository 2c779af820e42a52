package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/job"
)

// inside is SLURM as a job sees it on its first node: srun starts the ranks, and scontrol tells
// about the job.
type inside struct {
	shell submit.Shell
	spec  submit.JobSpec
	setup setup
	// recorder is the socket of the recorder; "" if there is none.
	recorder string
}

var (
	_ job.Launcher  = (*inside)(nil)
	_ job.Scheduler = (*inside)(nil)
)

// Name is SLURM's name, for messages.
func (in *inside) Name() string { return "SLURM" }

// Job is the job's id.
func (in *inside) Job() string { return cluster.JobID(in.shell.Getenv) }

// Nodes are the job's nodes, in SLURM's short form.
func (in *inside) Nodes() string { return in.shell.Getenv("SLURM_JOB_NODELIST") }

// Line records a start: "job ID TIME CLUSTER".
func (in *inside) Line(now time.Time) string {
	words := []string{"job", in.Job(), now.Format("2006-01-02T15:04:05-0700"), in.cluster()}
	return strings.TrimSpace(strings.Join(words, " "))
}

// Restarts is how often SLURM has started the job again.
func (in *inside) Restarts() int {
	n, _ := strconv.Atoi(in.shell.Getenv("SLURM_RESTART_COUNT")) // It is unset in the first start.
	return n
}

// How long SLURM's commands may take. The controller may be busy, or down.
const (
	askLimit     = 30 * time.Second
	requeueLimit = time.Minute
)

// run runs one of SLURM's commands.
func (in *inside) run(limit time.Duration, name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	return submit.ExecRunner{Timeout: limit, Env: in.shell.Environ}.Run(context.Background(), path, args...)
}

// wordLine is the line of scontrol with a job's state. No job name can match it.
var wordLine = regexp.MustCompile(`(?m)^\s+JobState=(\S+) Reason=(\S+)`)

// ask asks a cluster ("" is this one) for a job's state, and returns the answer too.
func (in *inside) ask(cluster, id string) (w job.Word, text string, err error) {
	out, err := in.run(askLimit, "scontrol", clusterArgs(cluster, "show", "job", id)...)
	if m := wordLine.FindSubmatch(out); m != nil {
		w.State, w.Reason = string(m[1]), string(m[2])
	}
	return w, string(out), err
}

// Word is SLURM's word on this job.
func (in *inside) Word() job.Word {
	w, _, _ := in.ask("", in.Job()) // No answer is a word, too.
	return w
}

// cluster is the name of this job's cluster.
func (in *inside) cluster() string { return in.shell.Getenv("SLURM_CLUSTER_NAME") }

// Other finds another job that has started this run and runs, is suspended, or is just ending. A
// job of another cluster may still run if nobody has recorded its end and its cluster cannot be
// asked from here.
func (in *inside) Other(dir rundir.Dir) (found job.Other) {
	starts, _ := rundir.ReadStarts(dir) // AddStart fails if they cannot be read.
	asked := []rundir.StartedJob{{ID: in.Job()}}
	for _, s := range slices.Backward(starts) {
		if s.Cluster == in.cluster() {
			s.Cluster = ""
		}
		if s.ID == "" || slices.Contains(asked, s) || s.Cluster != "" && endRecorded(dir, s.ID) {
			continue
		}
		asked = append(asked, s)
		w, text, err := in.ask(s.Cluster, s.ID)
		if s.Cluster != "" && err != nil && !unknownJob(err) {
			return job.Other{ID: s.ID, Cluster: s.Cluster}
		}
		if !isScript(record{text}.field(commandLine), dir) { // Clusters reuse ids.
			continue
		}
		switch parseState(w.State) {
		case submit.Running:
			if w.State != completing {
				return job.Other{ID: s.ID}
			}
			found = job.Other{ID: s.ID, Ending: true}
		case submit.Suspended:
			return job.Other{ID: s.ID}
		}
	}
	return found
}

// endRecorded reports whether the end of a run's job is recorded: by the job itself, by a command,
// or because the run was resumed after it.
func endRecorded(dir rundir.Dir, id string) bool {
	_, ended, _ := recordedEnd(submit.Job{ID: submit.JobID(id), Dir: dir})
	m, err := rundir.ReadManifest(dir)
	return ended || err == nil && (m.JobID == id && m.Ended != nil || slices.Contains(m.EarlierJobs(), id))
}

// Requeue queues this job again.
func (in *inside) Requeue() error {
	_, err := in.run(requeueLimit, "scontrol", "requeue", in.Job())
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("this node has no scontrol on its PATH")
	}
	if command := (*submit.CommandError)(nil); errors.As(err, &command) && command.Output != "" {
		return errors.New(command.Output)
	}
	return err
}

// exportAll gives the cells the job's environment, whatever "sbatch --export" gave it.
const exportAll = "--export=ALL"

// srunOptions returns srun's options for a cell.
func srunOptions(spec submit.JobSpec, cell rundir.Cell) []string {
	options := []string{
		fmt.Sprintf("--nodes=%d", spec.Nodes),
		fmt.Sprintf("--ntasks=%d", spec.Tasks()),
		fmt.Sprintf("--ntasks-per-node=%d", spec.TasksPerNode),
		"--mpi=" + cmp.Or(spec.MPI, "none"),
		"--kill-on-bad-exit=1",
		exportAll,
	}
	logs := rundir.At(escapePattern(spec.RunDir.Path()))
	log := logs.RankLogPattern("%t")
	if cell.Once {
		options = []string{"--nodes=1", "--relative=0", "--ntasks=1", "--ntasks-per-node=1", "--mpi=none", "--input=none", exportAll}
		log = logs.RankLog(0)
	}
	if spec.CPUsPerTask > 0 {
		options = append(options, fmt.Sprintf("--cpus-per-task=%d", spec.CPUsPerTask))
	}
	if dir := spec.Dir(cell); dir != "" {
		options = append(options, "--chdir="+dir)
	}
	return append(options, "--open-mode=append", "--output="+log)
}

// escapePattern doubles each "%" of a path, which would begin a placeholder in a pattern of SLURM.
func escapePattern(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// Launch starts the ranks of a cell by srun.
func (in *inside) Launch(cell rundir.Cell, start int) (job.Ranks, error) {
	srun, err := exec.LookPath("srun")
	if err != nil {
		return nil, err
	}
	dir := in.spec.RunDir
	args := append(srunOptions(in.spec, cell), in.spec.RankCommand(cell, true)...)
	command := append([]string{srun}, args...)
	if in.setup.ran {
		command = slices.Concat([]string{dir.Submit(), "job", "--enter", in.setup.file}, command)
	}
	s := &step{inside: in, cmd: exec.Command(command[0], command[1:]...), cell: cell, start: start, interval: interval, over: make(chan struct{})}
	s.cmd.Env = in.environ(cell, start)
	s.cmd.Stdout, s.cmd.Stderr = os.Stdout, os.Stderr // srun must not depend on a pipe to this process.
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", dir.Name(), err)
	}
	go s.watch()
	return s, nil
}

// A job that was queued from within another job inherits its variables. These would bind the ranks
// to the other job's CPUs, or give them the other job's ranks.
var inherited = append([]string{"SLURM_CPU_BIND", "SLURM_STEP", "SLURM_SRUN_", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_MPI_TYPE", rundir.EnvUserPrefix}, cluster.Prefixes...)

// fence is SLURM's kind of fence for PMIx. The tree fence, and so SLURM's default too (mixed), can
// release a rank before all have arrived. Then the rank leaves MPI_Init before another is ready for
// its messages, and that one dies (https://github.com/open-mpi/ompi/issues/12495). The ring fence
// waits for all.
const fence = "SLURM_PMIX_FENCE"

// isInherited reports whether a job must not inherit a variable from another one.
func isInherited(name string) bool {
	return slices.Contains(cluster.Names, name) || slices.ContainsFunc(inherited, func(p string) bool { return strings.HasPrefix(name, p) })
}

// environ returns srun's environment: the job's, or the one that the setup has left. The user's
// variables travel under names that srun does not know; a rank gives them their names back.
func (in *inside) environ(cell rundir.Cell, start int) (all []string) {
	env := in.spec.RankEnv("1")
	env.Cell, env.Start, env.Stopped = cell.Name, start, in.spec.RunDir.Stopped(strconv.Itoa(start))
	var users []string
	if !in.setup.ran {
		all = clean(in.shell.Environ)
		for _, v := range rundir.SortedVars(in.spec.Env) {
			users = append(users, rundir.EnvUserPrefix+v.String())
		}
	} else {
		for _, v := range in.setup.environ {
			name, _, _ := strings.Cut(v, "=")
			if _, given := in.spec.Env[name]; given { // With the value that the setup has left it.
				users = append(users, rundir.EnvUserPrefix+v)
			} else {
				all = append(all, v)
			}
		}
	}
	if in.shell.Getenv(fence) == "" {
		all = append(all, fence+"=ring")
	}
	for _, v := range env.Vars() {
		all = append(all, v.String())
	}
	if in.recorder != "" {
		all = append(all, rundir.EnvRecorder+"="+in.recorder)
	}
	return append(all, users...)
}

// step is a step of the job: srun, and the ranks that it has started.
type step struct {
	*inside
	cmd      *exec.Cmd
	cell     rundir.Cell
	start    int
	interval time.Duration // Between two looks at the step.
	over     chan struct{}
	blocked  atomic.Bool
}

// Wait waits for srun's end.
func (s *step) Wait() (int, error) {
	_ = s.cmd.Wait() // Its state says more.
	close(s.over)
	code := submit.ProcessCode(s.cmd.ProcessState)
	if s.blocked.Load() {
		return max(code, 1), job.ErrBlocked
	}
	if f := notStarted(s.spec.RunDir, s.shell.Now()); f != nil { // srun may end with 0.
		code = max(code, f.ExitCode)
		if first, _ := f.Write(s.spec.RunDir); first {
			fmt.Fprintln(s.shell.Out, "gonbatch:", submit.DescribeFailure(*f))
		}
	}
	return code, nil
}

// every calls do at intervals until the step is over, or do returns false.
func (s *step) every(do func() bool) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for do() {
		select {
		case <-s.over:
			return
		case <-ticker.C:
		}
	}
}

// Tell passes the stop on through srun.
func (s *step) Tell() {
	go s.every(func() bool { return s.cmd.Process.Signal(stopSignal) == nil })
}

// interval is the time between two looks at a step. After lostLooks, srun waits in vain for the
// processes of ranks that have recorded their ends; after sayLooks without a place for the step,
// the job says so, and after blockedLooks it gives up.
const (
	interval     = 10 * time.Second
	lostLooks    = 6
	sayLooks     = 6
	blockedLooks = 60
)

// watch ends a step that srun would wait for, perhaps until the time limit:
//   - A rank has failed, and others still run. SLURM loses its order to end a step on a node that
//     has not started it yet, for example because of a slow prolog, and gives none if a rank could
//     not be started.
//   - All ranks have ended, but the slurmstepd that would say so has died.
//   - Other processes hold the job's nodes: a step of the user's, or one that SLURM believes in
//     after its slurmstepd has died. Another start of the job gets other nodes, or free ones.
func (s *step) watch() {
	dir, ended, waiting := s.spec.RunDir, 0, 0
	s.every(func() bool {
		if notStarted(dir, s.shell.Now()) != nil {
			_ = s.cmd.Process.Signal(syscall.SIGTERM) // This ends the step. It is tried again.
		}
		ends, _ := rundir.ReadEnds(dir, s.start, s.cell.Name) // Without an answer, the next one counts.
		if _, failed := rundir.FirstFailed(ends); failed || len(ends) == s.spec.TasksOf(s.cell) {
			if ended++; ended > lostLooks {
				_ = s.cmd.Process.Kill()
			}
		}
		for _, end := range ends {
			if ended > 1 {
				_, _ = s.run(requeueLimit, "scancel", "--signal=KILL", s.Job()+"."+end.Step) // It is tried again.
				break
			}
		}
		if rundir.HasBegun(dir, s.start, s.cell.Name) || !waitsForPlace(dir) {
			waiting = 0
			return true
		}
		switch waiting++; {
		case waiting == sayLooks:
			fmt.Fprintf(s.shell.Out, "gonbatch: waiting for a place for cell %s: other processes hold the job's nodes (to list the job's steps: squeue -s -j %s); after %s, this start of the job ends\n",
				s.cell.Name, s.Job(), blockedLooks*s.interval)
		case waiting >= blockedLooks:
			s.blocked.Store(true)
			_ = s.cmd.Process.Signal(syscall.SIGTERM) // It is tried again.
		}
		return true
	})
}
