package tests

import (
	"os"
	"testing"

	"gonbatch/distributed/ranktest"
)

// TestMain makes the programs of all tests share a compile cache.
func TestMain(m *testing.M) {
	ranktest.SharePrograms()
	os.Exit(m.Run())
}
