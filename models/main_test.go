package models_test

import (
	"flag"
	"os"
	"testing"

	"gonbatch/distributed/ranktest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		ranktest.CompileQuickly()
	}
	os.Exit(m.Run())
}
