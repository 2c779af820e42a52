package rank

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"gonbatch/internal/proc"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// run runs the program to its end.
func (p *process) run() int {
	signals := make(chan os.Signal, 8)
	end := rundir.End{Rank: p.rank, Step: p.step, Began: p.shell.Now()}
	end.Host, _ = os.Hostname() // The record tells the rank too.
	if p.mpi {
		// mpirun passes SIGUSR1 on to the rank's whole process group. The program inherits that it
		// is ignored, and gets SIGTERM instead. submit repeats a signal that is lost until the
		// program has started.
		signal.Ignore(syscall.SIGUSR1)
	} else {
		signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM)
	}
	_ = rundir.Begin(p.env.Dir, p.env.Start, p.cell.Name) // If it can't be recorded, neither can the end, which says so.
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	recorded, err := p.launch()
	if err != nil {
		fmt.Fprintf(p.shell.Err, "gonbatch: cell %s: %v\n", p.cell.Name, err)
		end.Code, end.Ended = cannotStart(err), p.shell.Now()
		return p.report(end)
	}
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		_ = p.Wait() // Its state says more.
		close(ended)
	}()
	code, told := p.wait(signals, ended)
	recorded()
	if code == rundir.RequeueCode && p.step != "" && !told && !p.hasStopped() {
		told = within(signals, time.Second) // The program may have got the signal first.
	}
	end.Code, end.Told, end.Ended = code, told, p.shell.Now()
	if usage, ok := p.ProcessState.SysUsage().(*syscall.Rusage); ok {
		end.Memory = usage.Maxrss * 1024
		end.CPU = (p.ProcessState.UserTime() + p.ProcessState.SystemTime()).Seconds()
	}
	code = p.report(end)
	if leads() && (p.step == "" || p.cell.Once) { // In a step of several tasks, these share a group.
		p.tell(syscall.SIGKILL) // What the program has left running.
	}
	return code
}

// cannotStart returns the exit code of a program that cannot be started, as in a shell.
func cannotStart(err error) int {
	if errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 126
}

// wait waits for the program's end. On SIGUSR1 it tells the program to save and stop. SIGTERM, or
// another parent, says that who started this process has died, or wants it to end: then the program
// is told too, and killed after the grace time.
func (p *process) wait(signals <-chan os.Signal, ended <-chan struct{}) (code int, told bool) {
	var late <-chan time.Time
	parent := time.NewTicker(time.Second)
	defer parent.Stop()
	for {
		select {
		case <-ended:
			return submit.ProcessCode(p.ProcessState), told
		case s := <-signals:
			told = true
			if p.step != "" {
				continue // SLURM tells all processes of the step, and kills them later.
			}
			if s == syscall.SIGTERM && late == nil {
				late = time.After(p.grace)
			}
			p.tell(syscall.SIGTERM)
		case <-parent.C:
			if p.step == "" && late == nil && os.Getppid() != p.parent {
				told, late = true, time.After(p.grace)
				p.tell(syscall.SIGTERM)
			}
		case <-late:
			fmt.Fprintf(p.shell.Err, "gonbatch: the program has not stopped within %.0f s of SIGTERM: it is killed\n", p.grace.Seconds())
			p.tell(syscall.SIGKILL)
		}
	}
}

// within reports whether a signal comes within a time.
func within(signals <-chan os.Signal, limit time.Duration) bool {
	select {
	case <-signals:
		return true
	case <-time.After(limit):
		return false
	}
}

// leads reports whether this process leads its process group, which then has nothing but the
// program and what it has started.
func leads() bool { return syscall.Getpgrp() == os.Getpid() }

// tell sends a signal to the program, and to all that it has started, as far as these processes are
// known: a shell passes no signal on to the command for which it waits.
func (p *process) tell(s syscall.Signal) {
	if !leads() {
		_ = p.Process.Signal(s)
		return
	}
	for _, pid := range proc.Group(os.Getpid()) {
		if pid != os.Getpid() {
			_ = syscall.Kill(pid, s)
		}
	}
}

// report records the end and returns this process's exit code. The exit code of a program that has
// saved counts only if the rank was told to stop, or if its trainer has left a mark: other programs
// use that code for failures.
func (p *process) report(end rundir.End) int {
	if end.Code == rundir.RequeueCode {
		end.Saved = !p.cell.Once && (end.Told || p.hasStopped())
		if !end.Saved {
			fmt.Fprintln(p.shell.Err, rundir.Unasked)
			end.Code = 1
		}
	}
	errs := end.Write(p.env.Dir, p.env.Start, p.cell.Name)
	code := end.Code
	if end.Saved {
		errs, code = errors.Join(errs, p.env.MarkStopped()), 0
	}
	if errs != nil { // Who started the ranks misses the record.
		fmt.Fprintln(p.shell.Err, "gonbatch:", errs)
	}
	if code != 0 {
		p.abort(code)
	}
	return code
}

// hasStopped reports whether a rank of this start has been told to stop and has saved.
func (p *process) hasStopped() bool {
	_, err := os.Stat(p.env.Stopped)
	return err == nil
}

// MPICH's mpirun kills all ranks when one reports its failure. So the rank gives the others time to
// report which of them failed, and why, and then to end.
const (
	toReport = 5 * time.Second
	toEnd    = time.Second
)

// abort reports the failure to MPICH's mpirun by the protocol of PMI_FD: it doesn't notice a rank
// that fails before its MPI_Init, and the others wait for that rank forever.
func (p *process) abort(code int) {
	fd, err := strconv.Atoi(p.pmi)
	if err != nil {
		return
	}
	for begin := time.Now(); time.Since(begin) < toReport; time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat(p.env.Dir.FailurePath()); err == nil {
			break
		}
	}
	time.Sleep(toEnd)
	signal.Ignore(syscall.SIGPIPE)
	_, _ = syscall.Write(fd, fmt.Appendf(nil, "cmd=abort exitcode=%d\n", code)) // If mpirun is gone, nobody has to know.
}
