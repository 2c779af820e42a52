package slurmtmpl

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"gonbatch/submit"
)

// maxSignalLead is the maximum of sbatch's --signal.
const maxSignalLead = 65535 * time.Second

// Validate reports everything in a spec accepted by JobSpec.Validate that sbatch would refuse, and
// directives that submit refuses.
func Validate(spec submit.JobSpec) error {
	var errs []error
	for _, text := range spec.Directives {
		d, err := parseDirective(text)
		if _, twice := spec.Passed[d.name]; twice {
			err = fmt.Errorf("--directive=%q: --%s is given too; give one of them", text, d.name)
		}
		errs = append(errs, err)
	}
	for _, command := range spec.Setup {
		errs = append(errs, checkSetup(command))
	}
	if spec.SignalLead > maxSignalLead {
		errs = append(errs, fmt.Errorf("--signal-lead=%s: SLURM takes at most 18h", spec.SignalLead))
	}
	return errors.Join(errs...)
}

// checkSetup refuses a command of the setup that bash cannot read, or that would replace the shell:
// then no cell would run.
func checkSetup(command string) error {
	if strings.Contains(command, "\r\n") {
		return fmt.Errorf("--setup=%q: has Windows line ends (\\r\\n), which bash takes for characters of the commands; end lines with \\n", command)
	}
	parsed, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	var parse syntax.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("--setup=%q: bash cannot read it: at %d:%d, %s", command, parse.Pos.Line(), parse.Pos.Col(), parse.Text)
	}
	if err != nil {
		return fmt.Errorf("--setup=%q: bash cannot read it: %w", command, err)
	}
	syntax.Walk(parsed, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.FuncDecl:
			return false // It replaces another shell, or none yet.
		case *syntax.CallExpr:
			if len(n.Args) > 1 && n.Args[0].Lit() == "exec" {
				err = fmt.Errorf("--setup=%q: exec replaces the job's shell, and no cell would run; give the command without exec", command)
			}
		}
		return true
	})
	return err
}
