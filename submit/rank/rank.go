// Package rank runs one rank of a cell to its end. The command "submit rank RUNDIR CELL" does so,
// and that is what mpirun and srun start for each rank, or submit itself:
//
//	mpirun -n 4 RUNDIR/submit rank RUNDIR train
//	srun --ntasks=4 --output=RUNDIR/logs/rank-%t.log RUNDIR/submit rank --step RUNDIR train
//
// It gives the program its log, its folder, its variables and the recorder of the executed
// notebook, tells it to save and stop, and records how it ended in the run directory. So nobody has
// to believe a launcher.
package rank

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
)

// grace is how long a program has to save and end when nobody is left who would kill it.
const grace = time.Minute

// Runner runs a rank in the environment of a launcher.
type Runner struct {
	submit.Shell
	// Grace replaces the grace time of a minute, if it is set.
	Grace time.Duration
}

// badCall is the exit code of a call that cannot work.
const badCall = 2

// Run runs the rank whose number is in the environment. args are the run directory and the cell,
// and submit.RankStep before them. It returns the process's exit code: the program's, or 0 if the
// program was told to stop and has saved, because a launcher would otherwise kill the other ranks
// before they have saved too.
func (r Runner) Run(args []string) int {
	runtime.LockOSThread() // The kernel kills the program when the thread that started it ends.
	p, err := r.prepare(args)
	if err != nil {
		fmt.Fprintln(r.Err, "gonbatch:", err)
		return badCall
	}
	return p.run()
}

// process is a rank's program.
type process struct {
	*exec.Cmd
	cell rundir.Cell
	env  rundir.Env
	rank int
	// parent is the process that has started this one, and mpi is set if that is mpirun's.
	parent int
	mpi    bool
	// step is the id of SLURM's step; "" if SLURM has not started it.
	step string
	// grace is the time between SIGTERM and SIGKILL, if the launcher is gone.
	grace time.Duration
	// pmi is the number of the file by which MPICH's mpirun takes messages; "" if there is none.
	pmi string
	// recorder is the socket of the recorder; "" if there is none.
	recorder string
	shell    submit.Shell
}

// prepare makes this process's output go to the rank's log, and returns the program.
func (r Runner) prepare(args []string) (*process, error) {
	step := len(args) > 0 && args[0] == submit.RankStep
	if step {
		args = args[1:]
	}
	if len(args) != 2 {
		return nil, fmt.Errorf("submit %s %q: want the run directory and a cell", submit.RankName, args)
	}
	spec, err := submit.ReadDecided(rundir.At(args[0]))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(spec.Cells, func(c rundir.Cell) bool { return c.Name == args[1] })
	if i < 0 {
		return nil, fmt.Errorf("run %s has no cell %q", spec.RunDir.Name(), args[1])
	}
	cell := spec.Cells[i]
	where, err := cluster.Detect(r.Getenv)
	if err != nil {
		return nil, err
	}
	if where.Launcher == cluster.Single && spec.Tasks() > 1 && !cell.Once {
		return nil, fmt.Errorf("no variable has this process's rank: start %q by mpirun or submit", r.CommandLine)
	}
	if !step {
		if err := toLog(spec.RunDir.RankLog(where.Rank)); err != nil {
			return nil, err
		}
	}
	command := spec.Program(cell)
	p := &process{
		Cmd: exec.Command(command[0], command[1:]...), cell: cell, env: rundir.ReadEnv(r.Getenv), rank: where.Rank,
		parent: os.Getppid(), mpi: where.Launcher == cluster.OpenMPI || where.Launcher == cluster.PMI, grace: cmp.Or(r.Grace, grace), recorder: r.Getenv(rundir.EnvRecorder), shell: r.Shell,
	}
	if step {
		p.step = cluster.StepID(r.Getenv)
	} else {
		p.pmi = r.Getenv(cluster.PMIFile)
	}
	p.Dir = spec.Dir(cell)
	p.Stdout, p.Stderr = os.Stdout, os.Stderr
	p.Env = append(p.environ(r.Environ), rundir.EnvCell+"="+cell.Name)
	return p, nil
}

// toLog makes a file this process's output.
func toLog(path string) error {
	log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, fd := range []int{unix.Stdout, unix.Stderr} {
		if err := unix.Dup3(int(log.Fd()), fd, 0); err != nil {
			return fmt.Errorf("write to %s: %w", path, err)
		}
	}
	return log.Close()
}

// environ returns the program's environment: the user's variables get their names back.
func (p *process) environ(environ []string) (all []string) {
	var own []string
	for _, v := range environ {
		if user, ok := strings.CutPrefix(v, rundir.EnvUserPrefix); ok {
			own = append(own, user)
		} else {
			all = append(all, v)
		}
	}
	for _, v := range rundir.SortedVars(p.cell.Env) {
		own = append(own, v.String())
	}
	return append(all, own...)
}

// launch starts the program, with rank 0's output going to the recorder if there is one. Call ended
// when it has ended.
func (p *process) launch() (ended func(), err error) {
	socket := p.recorder
	if p.rank != 0 {
		socket = ""
	}
	started, ended, err := executed.Attach(socket, p.cell.Name, p.Cmd)
	if err != nil {
		return nil, err
	}
	defer started()
	return ended, p.Start()
}
