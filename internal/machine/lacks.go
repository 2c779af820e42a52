package machine

import (
	"os"
	"testing"
)

// Lacks skips the test, or fails it with CI=true, and says why it can't run here.
func Lacks(t testing.TB, reason string) {
	t.Helper()
	lacks(t, os.Getenv("CI"), reason)
}

func lacks(t testing.TB, ci, reason string) {
	t.Helper()
	if ci == "true" {
		t.Fatalf("CI=true, but %s", reason)
	}
	t.Skip(reason)
}
