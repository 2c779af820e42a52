package trainer

import (
	"gonbatch/internal/rundir"
	"gonbatch/logger"
)

// environment is what New reads of the process's environment, the only time that a trainer does.
type environment struct {
	rundir.Env
	mlflow logger.MLflowOptions
	// getenv has the variables whose names are the configuration's, and XLA's.
	getenv func(string) string
}

func readEnvironment(getenv func(string) string) environment {
	return environment{Env: rundir.ReadEnv(getenv), mlflow: logger.MLflowFromEnv(getenv), getenv: getenv}
}
