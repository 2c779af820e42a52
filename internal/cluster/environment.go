package cluster

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
)

// Launcher is what started the processes of a job.
type Launcher string

const (
	// Single is a process that no launcher started: a world of one.
	Single Launcher = "single"
	// OpenMPI is mpirun of Open MPI.
	OpenMPI Launcher = "openmpi"
	// PMI is MPICH's Hydra (mpiexec), Intel MPI's, or srun --mpi=pmi2.
	PMI Launcher = "pmi"
	// Slurm is srun.
	Slurm Launcher = "slurm"
	// Torchrun is torchrun, or another launcher that sets the same variables.
	Torchrun Launcher = "torchrun"
	// Submit is submit --local, which sets torchrun's variables if the machine has no MPI.
	Submit Launcher = "submit"
)

// Environment is a process's place in its job. LocalRank and LocalSize count the processes on this
// node; LocalSize is 0 if the launcher does not give it.
type Environment struct {
	Launcher             Launcher
	Rank, Size           int
	LocalRank, LocalSize int
	// CPUs is how many CPUs the scheduler gave to this process; 0 if it doesn't say.
	CPUs int
	// JobID is the id of the scheduler's job, if there is one.
	JobID string
	// RunID is the launcher's own name for the job, if it gives one to its ranks.
	RunID string
	// Master is rank 0's address, host:port, if the launcher gives a rendezvous and no MPI.
	Master string
}

// String describes the environment for logs.
func (e Environment) String() string {
	if e.Launcher == Single {
		return "rank 0 of 1"
	}
	return fmt.Sprintf("rank %d of %d (local rank %d), started by %s", e.Rank, e.Size, e.LocalRank, e.Launcher)
}

// Detect reads the environment through getenv. Variables that contradict one another, or are not
// numbers, are an error that names them.
func Detect(getenv func(string) string) (Environment, error) {
	r := &reader{getenv: getenv}
	env := Environment{Launcher: Single, Size: 1, LocalSize: 1}
	for _, l := range launchers {
		if r.has(l.rank) && r.has(l.with) {
			env = l.read(r)
			env.Launcher, env.Rank = l.launcher, r.number(0, l.rank)
			env.nameSubmit()
			break
		}
	}
	env.JobID, env.CPUs = JobID(getenv), r.number(0, cpusVariable)
	if r.err != nil {
		return Environment{}, r.err
	}
	return env, env.validate()
}

// HasRendezvous reports whether the ranks meet at Master. Otherwise MPI connects them.
func (e Environment) HasRendezvous() bool { return e.Launcher == Torchrun || e.Launcher == Submit }

// Local reports whether all ranks are known to be on this machine.
func (e Environment) Local() bool {
	// Package net could do this, but its C code would disable deadlock detection in programs that
	// import it.
	host := (&url.URL{Host: e.Master}).Hostname()
	address, _ := netip.ParseAddr(host) // A name has no address.
	return e.LocalSize == e.Size || host == "localhost" || address.IsLoopback()
}

func (e Environment) validate() error {
	switch {
	case e.Size < 1:
		return fmt.Errorf("cluster: %s says the world has %d ranks", e.Launcher, e.Size)
	case e.Rank < 0 || e.Rank >= e.Size:
		return fmt.Errorf("cluster: %s says this is rank %d of %d", e.Launcher, e.Rank, e.Size)
	case e.LocalRank < 0 || e.LocalSize > 0 && e.LocalRank >= e.LocalSize:
		return fmt.Errorf("cluster: %s says this is local rank %d of %d", e.Launcher, e.LocalRank, e.LocalSize)
	}
	return nil
}

// reader reads numbers, and remembers the first error.
type reader struct {
	getenv func(string) string
	err    error
}

func (r *reader) has(name string) bool { return r.getenv(name) != "" }

// number returns the value of the first variable that is set, or missing if none is.
func (r *reader) number(missing int, names ...string) int {
	for _, name := range names {
		text := r.getenv(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil && r.err == nil {
			r.err = fmt.Errorf("cluster: the environment variable %s is %q, not a number", name, text)
		}
		return n
	}
	return missing
}
