package script

import (
	"fmt"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// passSignals starts a program, forwards the signals that ask it to save and stop, and waits until
// it ends.
const passSignals = `gonbatch_child= gonbatch_passed= gonbatch_told=
for gonbatch_signal in INT TERM USR1 USR2; do
  trap "gonbatch_passed=$gonbatch_signal; gonbatch_told=yes; [ -z \"\$gonbatch_child\" ] || kill -$gonbatch_signal \$gonbatch_child 2> /dev/null" "$gonbatch_signal"
done
%s "$@" <&0 &
gonbatch_child=$!
[ -z "$gonbatch_passed" ] || kill -"$gonbatch_passed" "$gonbatch_child" 2> /dev/null
gonbatch_passed=
wait "$gonbatch_child"
code=$?
while [ -n "$gonbatch_passed" ]; do # A signal ended the waiting, not the program; bash knows the code of one that has ended since.
  gonbatch_passed=
  wait "$gonbatch_child"
  code=$?
done
`

// endOnPurpose ends a script with the exit code of its program where that isn't a failure, because
// somebody told the script to stop: 75 asks for a restart, and 130 or 143 means that the signal
// ended the program.
const endOnPurpose = `[ "$code" -ne 75 ] || { [ -z "$gonbatch_told" ] && ! [ -e "$` + rundir.EnvStopped + `" ]; } || exit 75
[ "$code" -ne 130 ] && [ "$code" -ne 143 ] || [ -z "$gonbatch_told" ] || exit "$code"
`

// Program returns the script that starts the program of a cell that runs once, may fail or has its
// output captured. The program is next to it.
func (s Script) Program(name string) []byte {
	program := `"$(dirname "$0")"/` + shellescape.Quote(name)
	switch {
	case s.Capture.File != "" && s.MayFail:
		return []byte(s.head() + s.Capture.around(s.Place, program) + endOnPurpose + s.end())
	case s.Capture.File != "":
		return []byte(s.head() + s.Capture.around(s.Place, program) + "exit \"$code\"\n")
	case s.MayFail:
		return []byte(s.head() + fmt.Sprintf(passSignals, program) + endOnPurpose + s.end())
	}
	return []byte(s.head() + "exec " + program + " \"$@\"\n")
}

// Capture is a file that gets a copy of the output of rank 0's program; without a name there is no
// copy.
type Capture struct {
	File string
	// Append appends to the file.
	Append bool
}

// copying also sends rank 0's streams 3 and 4 to the file. The copying processes ignore signals,
// which are for the program, and end with it.
const copying = `
exec 3>&1 4>&2
gonbatch_copies=()
gonbatch_copy() { trap '' INT TERM USR1 USR2; exec tee -a -- FILE; }
case $(rank) in '' | 0)
  : OPEN FILE || { echo PROBLEM >&2; exit 1; }
  exec 3> >(gonbatch_copy) && gonbatch_copies+=($!)
  exec 4> >(gonbatch_copy >&2) && gonbatch_copies+=($!)
esac
`

// copied waits until the file is complete.
const copied = `exec 3>&- 4>&-
[ -z "${gonbatch_copies[*]}" ] || wait "${gonbatch_copies[@]}"
`

// around returns the lines that run a program to its end and copy its output. place names the cell.
func (c Capture) around(place, program string) string {
	open := ">"
	if c.Append {
		open = ">>"
	}
	problem := fmt.Sprintf("gonbatch: %s: %%capture can't write %s, for the reason above: make its folder first, such as by a line !mkdir -p FOLDER", place, c.File)
	files := strings.NewReplacer("FILE", filePath(c.File), "OPEN", open, "PROBLEM", shellescape.Quote(problem))
	return cluster.Shell() + files.Replace(copying) + fmt.Sprintf(passSignals, program+" >&3 2>&4 3>&- 4>&-") + copied
}
