package submit

import (
	"slices"
	"strings"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// CleanEnviron returns an environment for the commands of batch systems and MPI: environ without
// the variables of a job in which this process may run.
func CleanEnviron(environ []string) []string {
	return slices.DeleteFunc(cluster.Outside(environ), func(variable string) bool { return strings.HasPrefix(variable, rundir.EnvUserPrefix) })
}
