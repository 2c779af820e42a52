package local

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// guardScript ends the process group $1 if this process dies before it has written a line: its
// first process has got SIGTERM then (see runGroup). What is left of the group when that process
// has ended, or after $2 seconds, is killed. The guard has its own session, so that neither the
// terminal nor a signal to the group ends it.
const guardScript = `
read -r ended && exit
running() { # It may have ended and stay a zombie.
  read -r state < "/proc/$1/stat" || return
  case ${state##*) } in [XZ]*) return 1 ;; esac
}
second=0
while [ "$second" -lt "$2" ] && running "$1"; do
  sleep 1
  second=$((second + 1))
done
if running "$1"; then
  echo "submit: it was killed, and the program has not stopped within $2 s of SIGTERM: it is killed"
fi
kill -s KILL -- "-$1"`

// guard is a process that ends a process group if this process dies.
type guard struct {
	cmd *exec.Cmd
	end io.WriteCloser
}

// startGuard starts a guard for a process group. It writes to a log what it does.
func startGuard(group int, log *os.File) (*guard, error) {
	cmd := exec.Command("sh", "-c", guardScript, "guard", strconv.Itoa(group), strconv.Itoa(int(grace.Seconds())))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout = log
	end, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the process that ends the program if submit is killed: %w", err)
	}
	return &guard{cmd, end}, nil
}

// close ends the guard, when the group has ended.
func (g *guard) close() {
	_, _ = io.WriteString(g.end, "ended\n") // It fails if somebody has killed the guard, which is then of no use anyway.
	_ = g.end.Close()
	_ = g.cmd.Wait()
}
