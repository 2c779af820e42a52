package executed

import (
	"errors"
	"strings"
	"testing"

	"gonbatch/submit"
)

// TestCommand: a call with other words is refused.
func TestCommand(t *testing.T) {
	for _, words := range []string{"", "spare more", "serve"} {
		err := Command(submit.Shell{}, strings.Fields(words))
		if !errors.As(err, new(submit.UsageError)) || !strings.HasPrefix(err.Error(), "submit recorder") {
			t.Errorf("recorder %s: %v", words, err)
		}
	}
}
