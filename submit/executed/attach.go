package executed

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Attach makes the output of a cell's program that has not started yet go to the recorder at
// socket; with socket "", it only removes variables of an outer recorder. Call started when the
// program has started, or could not, and ended when it has ended. This process's standard output is
// the log.
func Attach(socket, cell string, cmd *exec.Cmd) (started, ended func(), err error) {
	nothing := func() {}
	cmd.Env = withoutPipes(cmd.Env)
	if socket == "" {
		return nothing, nothing, nil
	}
	p, err := newPipes()
	if err == nil {
		err = ask(socket, request{Attach: cell}, p.theirs())
	}
	if err != nil { // The recorder has failed, or is on another node.
		fmt.Fprintf(os.Stderr, lossNote, err)
		p.close()
		return nothing, nothing, nil
	}
	if err := p.share(); err != nil {
		p.close()
		return nil, nil, err
	}
	run := rundir.ReadEnv(submit.Shell{Environ: cmd.Env}.Getenv)
	spare := p.newSpare(run)
	cmd.Env = slices.Concat(cmd.Env, p.environ(), resultFile(run))
	cmd.Stdout, cmd.Stderr = take(&p.out.write), take(&p.err.write)
	return func() {
		_ = cmd.Stdout.(*os.File).Close()
		_ = cmd.Stderr.(*os.File).Close()
		p.close()
	}, spare.end, nil
}

// lossNote is the line in the log that says that the notebook lacks output, and why.
const lossNote = "[gonbatch: from here on the output is only in this log, not in executed.ipynb: %v]\n"

// resultFile returns the variable with the file for the program's result, if it is in a run. It
// removes what an earlier program has left there.
func resultFile(run rundir.Env) []string {
	if !run.InRun() {
		return nil
	}
	_ = os.Remove(run.Dir.Result())
	return []string{rundir.EnvResult + "=" + run.Dir.Result()}
}

// withoutPipes returns an environment without the variables of a recorder.
func withoutPipes(environ []string) []string {
	return slices.DeleteFunc(environ, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{protocol.GONB_PIPE_ENV, protocol.GONB_PIPE_BACK_ENV, rundir.EnvResult}, name)
	})
}

// pipe holds the two ends of a pipe.
type pipe struct{ read, write int }

// pipes are a program's pipes: they carry its output, and the answers to its rich output. The
// recorder holds the write end of alive, so that its death is noticed at the read end.
type pipes struct{ out, err, display, back, alive pipe }

func newPipes() (p pipes, err error) {
	for _, one := range []*pipe{&p.out, &p.err, &p.display, &p.back, &p.alive} {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return p, err
		}
		*one = pipe{ends[0], ends[1]}
	}
	return p, nil
}

// theirs returns the ends that the recorder gets, and the log.
func (p pipes) theirs() []int {
	return []int{p.out.read, p.err.read, p.display.read, p.back.write, p.alive.write, 1}
}

// share lets the program inherit its ends of the pipes for rich output.
func (p pipes) share() error {
	for _, fd := range []int{p.display.write, p.back.read} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	return nil
}

// take returns the file of an end, which p no longer closes.
func take(fd *int) *os.File {
	f := os.NewFile(uintptr(*fd), fmt.Sprint("pipe ", *fd))
	*fd = -1
	return f
}

// close closes the ends that this process still has.
func (p *pipes) close() {
	for _, one := range []*pipe{&p.out, &p.err, &p.display, &p.back, &p.alive} {
		for _, fd := range []*int{&one.read, &one.write} {
			if *fd > 0 {
				_ = take(fd).Close()
			}
		}
	}
}

// environ returns the variables with the names of the inherited pipes, by which GoNB's package
// gonbui opens them.
func (p pipes) environ() []string {
	return []string{
		fmt.Sprintf("%s=/proc/self/fd/%d", protocol.GONB_PIPE_ENV, p.display.write),
		fmt.Sprintf("%s=/proc/self/fd/%d", protocol.GONB_PIPE_BACK_ENV, p.back.read),
	}
}
