// Package machine says where the sources of a test are, and what this machine lacks that the test
// needs. Such a test is skipped with the reason, but with CI=true it fails: a build machine has
// everything, and its tests all run.
//
//	if _, err := exec.LookPath("shellcheck"); err != nil {
//		machine.Lacks(t, "shellcheck is not on PATH: apt-get install shellcheck")
//	}
package machine
