package tests

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"gonbatch/distributed/ranktest"
)

// TestMain makes the programs of all tests share a compile cache. With -short, they test and
// predict with a part of their examples, unless a test says otherwise.
func TestMain(m *testing.M) {
	ranktest.SharePrograms()
	state, err := os.MkdirTemp("", "state-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", state) // Their run roots are not the developer's.
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if flag.Parse(); testing.Short() {
		for name, batches := range map[string]string{"TRAINER_LIMIT_TEST_BATCHES": "4", "TRAINER_LIMIT_PREDICT_BATCHES": "2"} {
			_ = os.Setenv(name, batches)
		}
	}
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
	_ = os.RemoveAll(state)
	os.Exit(code)
}
