package magic

import (
	"bytes"
	"context"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// Help says what each magic of this kernel does, by its name with all its %.
var Help = map[string]string{
	"%submit": "%submit [FLAGS] [-- PROGRAM FLAGS]\nSubmit this notebook as a job: the cells that ran in this session without an error, in order, as they were last, with the tags that they have in the notebook as it was last saved. " +
		"The flags are those of the submit command (%submit --help). A card below the cell shows how the job is doing. " +
		"With --saved the notebook is submitted as it was last saved.",
	"%%submit": "%%submit [FLAGS]\nSubmit the rest of this cell as a job: it is the job's one program, with the declarations of this session.",
	"%jobs":    "%jobs\nList all runs below the current folder, the newest last.",
	"%logs":    "%logs [--rank N] [JOB]\nPrint a rank's log. JOB is a job id, a run's name or the start of one; without it the last %submit's.",
	"%wait":    "%wait [JOB]\nWait until a job has ended; the cell fails if the job did. Without JOB it is the last %submit's.",
	"%cancel":  "%cancel [JOB]\nEnd a job. Without JOB it is the last %submit's.",
	"%result": "%result [JOB] [as NAME]\nShow what a run left behind, also as JSON: its state, its metrics by name, its checkpoints and images. With \"as run\" the next " +
		"cells have it as Go values: run.Last(\"val/loss\"), run.Series(\"train/loss\"), run.Metrics(), run.Checkpoints(), run.Images() (package gonbatch/submit/result). " +
		"A job does not: %submit leaves the cells that use it out; in a notebook that is submitted as a file tag them notebook-only. Without JOB it is the last %submit's.",
	"%keep":        "%keep x, y\nLet package-level variables survive into later cells. %keep -d x ends it, %keep lists them.",
	"%time":        "%time\nTell how long the cell takes, and where the time goes.",
	"%timeit":      "%timeit EXPRESSION\nTell how long an expression takes, over many calls.",
	"%distributed": "%distributed N\nRun the next program as N ranks on this machine, as a rehearsal of a job.",
	"%devices":     "%devices\nList the devices that XLA sees.",
	"%who":         "%who\nList what the cells have declared.",
	"%allow_fail":  "%allow_fail\nLet the shell commands of the cell fail.",
}

// HelpText is the help of all magics of this kernel, as Markdown.
func HelpText() string {
	var text strings.Builder
	text.WriteString("## Magics of the gonbatch kernel\n\nA cell that ends in an expression shows its value; a semicolon behind it hides it.\n\n")
	for _, name := range slices.Sorted(maps.Keys(Help)) {
		usage, what, _ := strings.Cut(Help[name], "\n")
		text.WriteString("- `" + usage + "`: " + what + "\n")
	}
	return text.String() + "\n"
}

// Complete completes the last word of the submit command's arguments: flags, and where it knows them their values.
func (m *Magics) Complete(ctx context.Context, words []string) []string {
	cmd := exec.CommandContext(ctx, m.opts.Program, append([]string{"__complete"}, words...)...)
	cmd.Dir, cmd.Env = m.opts.Dir(), m.opts.Environ
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var matches []string
	for line := range bytes.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimRight(string(line), "\n"), "\t")
		if strings.HasPrefix(word, "-") {
			matches = append(matches, word)
		}
	}
	return matches
}
