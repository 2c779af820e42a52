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
	"%submit": "%submit [FLAGS] [-- PROGRAM FLAGS]\nSubmit this notebook as a job: every cell that ran in this session without an error, in order, as it was when it last ran, with its tags from the last saved notebook. " +
		"The flags are those of the submit command (%submit --help). A card below the cell shows the job's progress. " +
		"--saved submits the notebook as it was last saved instead.",
	"%%submit": "%%submit [FLAGS]\nSubmit the rest of this cell as a job: the job's only program, with the declarations of this session.",
	"%jobs":    "%jobs\nList all runs, newest last.",
	"%logs":    "%logs [--rank N] [RUN]\nPrint a rank's log. RUN is a job id, a run's name or the beginning of one; the default is the run of the last %submit.",
	"%wait":    "%wait [RUN]\nWait until a job ends. The cell fails if the job failed. The default is the run of the last %submit.",
	"%cancel":  "%cancel [RUN]\nCancel a job. The default is the run of the last %submit.",
	"%result": "%result [RUN] [as NAME]\nShow the results of a run, also as JSON: its state, its metrics by name, its checkpoints and images. \"as run\" declares them for the next " +
		"cells as a Go value: run.Last(\"val/loss\"), run.Series(\"train/loss\"), run.Metrics(), run.Checkpoints(), run.Images() (package gonbatch/submit/result). " +
		"A job does not have this value: %submit leaves out the cells that use it; if you submit a notebook file, tag them notebook-only. The default is the run of the last %submit.",
	"%keep":        "%keep x, y\nKeep the values of package-level variables for later cells. %keep -d x stops keeping x; %keep lists what is kept.",
	"%time":        "%time\nShow how long the cell takes, and where the time goes.",
	"%timeit":      "%timeit EXPRESSION\nMeasure how long an expression takes, averaged over many calls.",
	"%distributed": "%distributed N\nRun the next program as N ranks on this machine, to try it before submitting.",
	"%devices":     "%devices\nList the devices that XLA sees.",
	"%who":         "%who\nList what the cells have declared.",
	"%allow_fail":  "%allow_fail\nLet the shell commands of this cell fail without failing the cell.",
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
