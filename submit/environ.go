package submit

import (
	"slices"
	"strings"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// CleanEnviron is an environment for the commands of batch systems and of MPI: environ without the
// variables of a job that this process may run in.
func CleanEnviron(environ []string) []string {
	return slices.DeleteFunc(cluster.Outside(environ), func(variable string) bool { return strings.HasPrefix(variable, rundir.EnvUserPrefix) })
}
