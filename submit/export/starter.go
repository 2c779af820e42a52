package export

import (
	"fmt"
	"strings"

	"al.essio.dev/pkg/shellescape"
)

// passSignals starts a program that may fail, hands on the signals that ask it to save and stop, and waits for its end.
const passSignals = ` "$@" <&0 &
child=$!
for signal in INT TERM USR1 USR2; do
  trap "kill -$signal $child 2> /dev/null" "$signal"
done
wait "$child"
code=$?
while kill -0 "$child" 2> /dev/null; do # A signal ended the waiting, not the program.
  wait "$child"
  code=$?
done
# 75 is "start me again", and what a signal ended was ended on purpose: neither is a failure of the cell.
[ "$code" -ne 75 ] && [ "$code" -ne 130 ] && [ "$code" -ne 143 ] || exit "$code"
`

// renderStarter gives the script that starts the program of a step which runs once or may fail. The program lies beside it.
func renderStarter(cell *cellInfo, step Step) []byte {
	place := printable(cell.ref.String())
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/bash\n%s%s; DO NOT EDIT.\n# %s\n", generatedScript, cell.ref.Notebook, place)
	program := `"$(dirname "$0")"/` + shellescape.Quote(step.Name)
	if !step.MayFail {
		b.WriteString("exec " + program + " \"$@\"\n")
		return []byte(b.String())
	}
	b.WriteString(program + passSignals)
	b.WriteString(renderEnd(place, true))
	return []byte(b.String())
}
