package script

import (
	"fmt"

	"al.essio.dev/pkg/shellescape"
)

// passSignals starts a program that may fail, hands on the signals that ask it to save and stop,
// and waits for its end.
const passSignals = `child= passed= told=
for signal in INT TERM USR1 USR2; do
  trap "passed=$signal; told=yes; [ -z \"\$child\" ] || kill -$signal \$child 2> /dev/null" "$signal"
done
%s "$@" <&0 &
child=$!
[ -z "$passed" ] || kill -"$passed" "$child" 2> /dev/null
passed=
wait "$child"
code=$?
while [ -n "$passed" ]; do # A signal ended the waiting, not the program; bash knows the code of one that has ended since.
  passed=
  wait "$child"
  code=$?
done
# A program that was told to stop and ends with 75 wants to be started again, and what a signal ended
# was ended on purpose: neither is a failure of the cell.
[ "$code" -ne 75 ] || { [ -z "$told" ] && ! [ -e "$GONBATCH_STOPPED" ]; } || exit 75
[ "$code" -ne 130 ] && [ "$code" -ne 143 ] || exit "$code"
`

// Program returns the script that starts the program of a cell which runs once or may fail. The
// program lies beside it.
func (s Script) Program(name string) []byte {
	program := `"$(dirname "$0")"/` + shellescape.Quote(name)
	if !s.MayFail {
		return []byte(s.head() + "exec " + program + " \"$@\"\n")
	}
	return []byte(s.head() + fmt.Sprintf(passSignals, program) + s.end())
}
