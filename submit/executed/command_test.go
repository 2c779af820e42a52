package executed

import (
	"errors"
	"strings"
	"testing"

	"gonbatch/submit"
)

// TestCommand: a script that gives wrong words learns the right ones.
func TestCommand(t *testing.T) {
	for _, words := range []string{"", "serve", "serve run", "serve run 7 more", "spare more", "end", "end 0 1", "end well", "record"} {
		err := Command(submit.Shell{}, strings.Fields(words))
		if !errors.As(err, new(submit.UsageError)) || !strings.HasPrefix(err.Error(), "submit recorder") {
			t.Errorf("recorder %s: %v", words, err)
		}
	}
}
