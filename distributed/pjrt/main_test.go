package pjrt_test

import (
	"flag"
	"os"
	"testing"

	"gonbatch/distributed/ranktest"
)

// TestMain: with -short, XLA compiles quickly; make test-all runs the programs that users run.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		ranktest.CompileQuickly()
	}
	os.Exit(m.Run())
}
