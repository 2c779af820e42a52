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

// Long skips a test that takes long, and finds little that others don't, unless all tests run: make
// test-all runs them, make test (-short) doesn't.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long: make test-all runs it")
	}
}

// Fewer returns the cases of a table, with -short only the first n: make test tries these, make
// test-all all of them.
func Fewer[T any](cases []T, n int) []T {
	if testing.Short() {
		return cases[:min(n, len(cases))]
	}
	return cases
}

// Tries returns how many random cases a test tries: with -short, few.
func Tries(all, few int) int {
	if testing.Short() {
		return few
	}
	return all
}
