package executed

import (
	"errors"
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

// attach replaces this process with a program whose output goes to the recorder at socket; it
// returns only if that fails. If there is no recorder (it has failed, or is on another node), the
// program runs without one, and its log says so. Standard output is the log. environ is the
// program's environment, which names the cell. The command spare runs runSpare, which takes over
// the output if the recorder dies.
func attach(socket string, command, environ, spare []string) error {
	if len(command) == 0 {
		return errors.New("no program: give one, and its arguments")
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	environ = without(environ, protocol.GONB_PIPE_ENV, protocol.GONB_PIPE_BACK_ENV, rundir.EnvResult)
	p, err := connect(socket, cellOf(environ))
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, lossNote, err)
	default:
		if err := p.startSpare(spare); err != nil {
			fmt.Fprintf(os.Stderr, "[gonbatch: if the recorder of executed.ipynb dies, this program dies with it: %v]\n", err)
		}
		if err := p.use(); err != nil {
			return err
		}
		environ = append(append(environ, p.environ()...), resultFile(environ)...)
	}
	return fmt.Errorf("%s: %w", program, unix.Exec(program, command, environ))
}

// lossNote is the line in the log that says that the notebook lacks output, and why.
const lossNote = "[gonbatch: from here on the output is only in this log, not in executed.ipynb: %v]\n"

// connect creates a program's pipes and passes their other ends to the recorder.
func connect(socket, cell string) (pipes, error) {
	p, err := newPipes()
	if err != nil {
		return p, err
	}
	return p, ask(socket, request{Attach: cell}, p.theirs()...)
}

// resultFile returns the variable with the file for the program's result, if it is in a run. It
// removes what an earlier program has left there.
func resultFile(environ []string) []string {
	env := rundir.ReadEnv(submit.Shell{Environ: environ}.Getenv)
	if !env.InRun() {
		return nil
	}
	_ = os.Remove(env.Dir.Result())
	return []string{rundir.EnvResult + "=" + env.Dir.Result()}
}

// cellOf returns the cell that an environment names.
func cellOf(environ []string) (cell string) {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, rundir.EnvCell+"="); ok {
			cell = value
		}
	}
	return cell
}

// without returns an environment without some variables.
func without(environ []string, names ...string) []string {
	return slices.DeleteFunc(environ, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
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

// use makes the program's ends its stdout and stderr, and lets it inherit the others.
func (p pipes) use() error {
	for _, fd := range []int{p.display.write, p.back.read} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	return errors.Join(unix.Dup3(p.out.write, 1, 0), unix.Dup3(p.err.write, 2, 0))
}

// environ returns the variables with the names of the inherited pipes, by which GoNB's package
// gonbui opens them.
func (p pipes) environ() []string {
	return []string{
		fmt.Sprintf("%s=/proc/self/fd/%d", protocol.GONB_PIPE_ENV, p.display.write),
		fmt.Sprintf("%s=/proc/self/fd/%d", protocol.GONB_PIPE_BACK_ENV, p.back.read),
	}
}
