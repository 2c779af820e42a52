package executed

import (
	"strings"

	"gonbatch/submit"
)

// Name is the name of the command that runs the helper of a recorder.
const Name = "recorder"

// Command runs "submit recorder spare", which takes over a program's output if its recorder dies.
func Command(shell submit.Shell, args []string) error {
	if strings.Join(args, " ") != "spare" {
		return submit.Usagef("submit %s %q: want spare", Name, args)
	}
	return runSpare(shell.Getenv)
}
