package distributed

import (
	"context"
	"fmt"
	"unsafe"

	"gonbatch/distributed/mpi"
	"gonbatch/distributed/tcp"
	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// communicator moves data between the ranks. Its collectives block until the other ranks have
// called them too.
type communicator interface {
	fmt.Stringer
	AllReduce(values []float64) error
	Broadcast(data []byte, root int) error
	AllGather(data []byte) ([][]byte, error)
	Barrier() error
	// Transport is for compiled programs (see package pjrt). It is nil if there are no other ranks.
	Transport() unsafe.Pointer
	// InMemory says that all ranks are on this machine, and reports whether they reach one another
	// through its memory. All ranks must call it between the same collectives.
	InMemory() bool
	// Crowded says that the ranks of some machine outnumber its CPUs. All ranks must call it
	// between the same collectives.
	Crowded()
	Close() error
}

var (
	_ communicator = alone{}
	_ communicator = overMPI{}
	_ communicator = overTCP{}
)

// connect opens the communicator of the job's ranks.
func connect(ctx context.Context, e cluster.Environment, getenv func(string) string) (communicator, error) {
	switch {
	case e.Size == 1:
		return alone{}, nil
	case e.HasRendezvous():
		comm, err := tcp.Init(ctx, tcp.Config{
			Rank: e.Rank, Size: e.Size, Master: e.Master, Local: e.Local(), Reserved: e.Launcher == cluster.Submit,
			Secret: getenv(rundir.EnvRendezvousKey) + "\n" + e.RunID,
		})
		if err != nil {
			return nil, err
		}
		return overTCP{comm}, nil
	}
	return connectMPI(e, getenv)
}

func connectMPI(e cluster.Environment, getenv func(string) string) (communicator, error) {
	comm, err := mpi.Init(mpi.Candidates(getenv))
	if err != nil {
		return nil, fmt.Errorf("%s started %d ranks, which need MPI to communicate: %w", e.Launcher, e.Size, err)
	}
	if comm.Size() != e.Size || comm.Rank() != e.Rank {
		return nil, &MismatchError{Environment: e, MPI: comm.Version(), Library: comm.Library(), MPIRank: comm.Rank(), MPISize: comm.Size()}
	}
	return overMPI{comm}, nil
}

// MismatchError reports that MPI did not join the ranks that the launcher started, so that each
// rank would train alone.
type MismatchError struct {
	Environment      cluster.Environment
	MPI, Library     string
	MPIRank, MPISize int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("this is %s, but MPI (%s, %s) says rank %d of %d: the launcher and the MPI library don't use the same protocol.\n"+
		"Use `srun --mpi=pmix` with Open MPI, `srun --mpi=pmi2` with MPICH (`srun --mpi=list` shows what your site has; submit takes --mpi), "+
		"or the mpirun of the same MPI, or set %s to the library of your launcher",
		e.Environment, e.MPI, e.Library, e.MPIRank, e.MPISize, rundir.EnvMPILibrary)
}

// alone is the communicator of a single rank.
type alone struct{}

func (alone) String() string                          { return "no other ranks" }
func (alone) AllReduce([]float64) error               { return nil }
func (alone) Broadcast([]byte, int) error             { return nil }
func (alone) AllGather(data []byte) ([][]byte, error) { return [][]byte{data}, nil }
func (alone) Barrier() error                          { return nil }
func (alone) Transport() unsafe.Pointer               { return nil }
func (alone) InMemory() bool                          { return false }
func (alone) Crowded()                                {}
func (alone) Close() error                            { return nil }

// overTCP is the communicator of a job started by torchrun, or by submit as torchrun does.
type overTCP struct{ *tcp.Comm }

func (overTCP) String() string { return "a TCP ring" }
func (overTCP) InMemory() bool { return false }
func (overTCP) Crowded()       {} // It sleeps while it waits.

// overMPI is the communicator of a job started by mpirun or srun.
type overMPI struct{ *mpi.Comm }

func (m overMPI) String() string { return m.Version() }
func (m overMPI) InMemory() bool { m.Comm.InMemory(); return true }
