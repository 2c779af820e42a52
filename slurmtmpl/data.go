package slurmtmpl

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"al.essio.dev/pkg/shellescape"
	"mvdan.cc/sh/v3/syntax"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Data is a template's data: the job's own fields, and values derived from them.
type Data struct {
	submit.JobSpec
	// Directives are the #SBATCH options, quoted and sorted.
	Directives []string
	// Before are the lines that load the modules and run the setup, each of which ends the setup if
	// it fails. They see the job's variables, which are Exports, sorted by name.
	Before  []string
	Exports []rundir.Var
	// Command is the command that runs the job, quoted. If there are lines in Before, they are its
	// standard input, in a here-document that ends with the line EndOfSetup.
	Command, EndOfSetup string
}

// newData returns the template's data for spec, whose MPI kind must be decided.
func newData(spec submit.JobSpec) (Data, error) {
	if strings.ContainsRune(spec.RunDir.Path(), '\\') {
		return Data{}, fmt.Errorf("--run-root=%q: has a backslash, which SLURM drops from the paths of logs; choose another folder", spec.RunDir.Path())
	}
	directives, err := directives(spec)
	if err != nil {
		return Data{}, err
	}
	data := Data{JobSpec: spec, Directives: directives, Exports: rundir.SortedVars(spec.Env)}
	run, dir := shellescape.Quote(spec.RunDir.Submit())+" job", shellescape.Quote(spec.RunDir.Path())
	data.Command = run + " " + dir
	if !spec.HasSetup() {
		return data, nil
	}
	data.Command = run + " --setup " + dir
	if len(spec.Modules) > 0 {
		data.Before = append(data.Before, "command -v module > /dev/null || . /etc/profile")
	}
	for _, m := range spec.Modules {
		data.Before = append(data.Before, "module load "+shellescape.Quote(m)+" || exit")
	}
	for _, command := range spec.Setup {
		data.Before = append(data.Before, orExit(command))
	}
	data.EndOfSetup = "SETUP"
	for strings.Contains(fmt.Sprint(data.Exports, data.Before), data.EndOfSetup) {
		data.EndOfSetup += "_"
	}
	return data, nil
}

// Describe describes a cell and its command in one line.
func (d Data) Describe(cell rundir.Cell) string {
	where := "on " + plural.Of(d.Tasks(), "rank")
	if cell.Once {
		where = "once"
	}
	command := shellescape.QuoteCommand(append([]string{filepath.Base(d.RunDir.CellProgram(cell))}, d.CellArgs(cell)...))
	return oneLine(where + ": " + command)
}

// Decisions are what submit has found out and decided for the job, as comments.
func (d Data) Decisions() (lines []string) {
	for _, decision := range []struct{ name, value string }{
		{"--mpi=", d.MPI}, {"--mpi-library=", d.MPILibrary}, {"--platform=", d.Platform}, {"XLA's plugin is in ", d.RankEnv("").PluginDir},
	} {
		if decision.value != "" {
			lines = append(lines, oneLine(decision.name+decision.value))
		}
	}
	return lines
}

// oneLine returns a text without characters that could end a comment.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// orExit returns a command of the setup that ends the setup if it fails. A command that is more
// than a few words stands in braces, whose end no comment can hide.
func orExit(command string) string {
	if parsed, err := syntax.NewParser(syntax.KeepComments(true)).Parse(strings.NewReader(command), ""); err == nil && len(parsed.Stmts) == 1 && len(parsed.Last) == 0 {
		s := parsed.Stmts[0]
		if _, simple := s.Cmd.(*syntax.CallExpr); simple && len(s.Comments)+len(s.Redirs) == 0 && !s.Background && !s.Negated && !strings.HasSuffix(strings.TrimSpace(command), ";") {
			return command + " || exit"
		}
	}
	return "{ " + command + "\n} || exit"
}

func escapePattern(path string) string { return strings.ReplaceAll(path, "%", "%%") }
