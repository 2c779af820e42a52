package tests

import (
	"fmt"
	"os"
	"testing"

	"gonbatch/distributed/ranktest"
)

// TestMain makes the programs of all tests share a compile cache.
func TestMain(m *testing.M) {
	ranktest.SharePrograms()
	code := m.Run()
	if mlflow.end != nil {
		mlflow.end()
	}
	if jupyterReader.end != nil {
		if err := jupyterReader.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
