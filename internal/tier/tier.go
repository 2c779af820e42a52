// Package tier divides the tests in two tiers: make test, which is go test -short, runs the first,
// make test-all both. A test belongs to the second because it takes long and finds little that
// others don't, never because it fails.
//
//	func TestEveryNotebook(t *testing.T) {
//		tier.Long(t)                                  // All of the test.
//		for _, ranks := range tier.Fewer(sizes, 2) {  // All of its cases but the first two.
//			for range tier.Tries(100, 10) {       // Most of its random cases.
package tier

import "testing"

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

// Half returns all cases of a table, with -short every second one.
func Half[T any](cases []T) (half []T) {
	if !testing.Short() {
		return cases
	}
	for i := 0; i < len(cases); i += 2 {
		half = append(half, cases[i])
	}
	return half
}

// Tries returns how many random cases a test tries: with -short, few.
func Tries(all, few int) int {
	if testing.Short() {
		return few
	}
	return all
}
