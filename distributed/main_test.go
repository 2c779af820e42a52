package distributed_test

import (
	"os"
	"testing"

	"gonbatch/distributed/ranktest"
)

func TestMain(m *testing.M) {
	ranktest.CompileQuickly()
	ranktest.SharePrograms()
	os.Exit(m.Run())
}
