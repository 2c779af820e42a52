package augment_test

import (
	"os"
	"testing"

	"gonbatch/distributed/ranktest"
)

func TestMain(m *testing.M) {
	ranktest.CompileQuickly()
	os.Exit(m.Run())
}
