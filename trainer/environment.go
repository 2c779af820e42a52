package trainer

import (
	"gonbatch/internal/rundir"
	"gonbatch/logger"
)

// environment is what New reads from the process's environment. Nothing else in a trainer reads it.
type environment struct {
	rundir.Env
	mlflow logger.MLflowOptions
	// getenv looks up the variables of the configuration, and XLA's.
	getenv func(string) string
}

func readEnvironment(getenv func(string) string) environment {
	return environment{Env: rundir.ReadEnv(getenv), mlflow: logger.MLflowFromEnv(getenv), getenv: getenv}
}
