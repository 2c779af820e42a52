package magic

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
)

// Complete completes the last word of the submit command's arguments: flags and, if it knows them,
// their values.
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
