// Package cluster brings up a small, real SLURM cluster on this machine for a test.
//
// Each node has its own network, host name, processes and shared memory (Linux namespaces on one
// bridge); the file system is shared, as on a real cluster. The machine that runs the test is the
// login node. Nothing is simulated: sbatch, srun, slurmctld, slurmd and munge are the
// distribution's own.
//
//	func TestSubmit(t *testing.T) {
//		c := cluster.Start(t)
//		out, err := c.Run("srun", "-N2", "hostname") // on the login node
//		host, err := c.On("n1", "hostname")          // on a compute node
//		cmd := exec.Command("submit", "--nodes=2", "mnist.ipynb")
//		cmd.Env = append(os.Environ(), c.Env()...)
//	}
//
// It needs root and Debian's slurm-wlm, slurm-wlm-basic-plugins, munge and iproute2. If one of them
// is missing, the test is skipped with the reason. With CI=true it fails instead: a build machine
// must run everything.
package cluster
