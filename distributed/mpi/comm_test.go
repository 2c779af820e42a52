package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sys/unix"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/mpi"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
)

func initRank(t *testing.T) *mpi.Comm {
	t.Helper()
	comm, err := mpi.Init(mpi.Candidates(os.Getenv))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
	})
	return comm
}

func initWorld(t *testing.T) *distributed.World {
	t.Helper()
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestContract(t *testing.T) {
	ranktest.Run(t, 3, func(t *testing.T) {
		comm := initRank(t)
		if comm.Size() != 3 || comm.Version() == "" {
			t.Fatalf("rank %d of %d, %q", comm.Rank(), comm.Size(), comm.Version())
		}
		checkContract(t, comm)
	})
}

func checkContract(t *testing.T, comm *mpi.Comm) {
	t.Helper()
	ranktest.CheckSums(t, comm, mpi.AllReduce[float32])
	ranktest.CheckSums(t, comm, mpi.AllReduce[int32])
	ranktest.CheckSums(t, comm, mpi.AllReduce[int64])
	ranktest.CheckScatters(t, comm, mpi.ReduceScatter[float32])
	ranktest.CheckScatters(t, comm, mpi.ReduceScatter[float64])
	ranktest.CheckScatters(t, comm, mpi.ReduceScatter[int32])
	ranktest.CheckScatters(t, comm, mpi.ReduceScatter[int64])
	ranktest.CheckTransport(t, comm, "MPI is not running")
}

// TestCrowded: all collectives are the same where ranks share CPUs, in parts too. While a rank
// waits for others, it leaves its CPU to them.
func TestCrowded(t *testing.T) {
	ranktest.Run(t, 3, func(t *testing.T) {
		comm := initRank(t)
		comm.Crowded()
		mpi.SetPart(3*7 + 2)
		mpi.SetChunk(997)
		ranktest.CheckGathers(t, comm)
		ranktest.CheckSums(t, comm, mpi.AllReduce[int64])
		ranktest.CheckBroadcasts(t, comm)
		checkAllToAll(t, comm)
		for _, share := range tier.Fewer([]int{997, 0}, 1) {
			mpi.SetShare(share)
			ranktest.CheckScatters(t, comm, mpi.ReduceScatter[float64])
		}
		checkRests(t, comm, "barrier", comm.Barrier)
		mpi.SetChunk(1 << 30)
		mpi.SetShare(256 << 10)
		in, out := make([]float32, 3<<18), make([]float32, 1<<18)
		checkRests(t, comm, "reduce-scatter", func() error { return mpi.ReduceScatter(comm, in, out) })
		if !testing.Short() {
			checkContract(t, comm)
		}
	})
}

// checkRests makes ranks wait for rank 0 in a collective. Those that wait sleep: Linux counts a
// sleep as a voluntary switch, but not sched_yield.
func checkRests(t *testing.T, comm *mpi.Comm, what string, collective func() error) {
	t.Helper()
	const late = 2 * time.Second
	if comm.Rank() == 0 {
		time.Sleep(late)
	}
	began, before := time.Now(), usage(t)
	if err := collective(); err != nil {
		t.Fatal(err)
	}
	after := usage(t)
	used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	if sleeps := after.Nvcsw - before.Nvcsw; time.Since(began) > late/2 && (used > late/2 || sleeps < 200) {
		t.Errorf("%s: rank %d computed for %s and slept %d times in %s", what, comm.Rank(), used, sleeps, time.Since(began))
	}
}

// usage is that of this process.
func usage(t *testing.T) (u unix.Rusage) {
	t.Helper()
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestInParts: data that takes several MPI calls is put together correctly.
func TestInParts(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 3, func(t *testing.T) {
		comm := initRank(t)
		for _, part := range tier.Fewer([]int{3*7 + 2, 1, 3 * 7}, 1) {
			mpi.SetPart(part)
			ranktest.CheckGathers(t, comm)
			ranktest.CheckScatters(t, comm, mpi.ReduceScatter[float64])
			checkAllToAll(t, comm)
		}
		for _, chunk := range tier.Fewer([]int{997, 4096}, 1) {
			mpi.SetChunk(chunk)
			ranktest.CheckSums(t, comm, mpi.AllReduce[float32])
			ranktest.CheckSums(t, comm, mpi.AllReduce[int64])
			ranktest.CheckBroadcasts(t, comm)
		}
		mpi.SetChunk(1 << 30)
		for _, share := range tier.Fewer([]int{4096, 997, 1 << 20}, 1) {
			mpi.SetShare(share)
			ranktest.CheckSums(t, comm, mpi.AllReduce[float32])
			ranktest.CheckSums(t, comm, mpi.AllReduce[int64])
			ranktest.CheckScatters(t, comm, mpi.ReduceScatter[float64])
		}
		mpi.SetShare(0)
		mpi.SetChunk(3) // Less than an element: then one by one.
		values := []int64{1, 2, 3}
		if err := mpi.AllReduce(comm, values); err != nil || !slices.Equal(values, []int64{3, 6, 9}) {
			t.Errorf("one by one: %v, %v", values, err)
		}
	})
}

// checkAllToAll exchanges parts of several sizes, each rank with each.
func checkAllToAll(t *testing.T, comm *mpi.Comm) {
	t.Helper()
	ranks, rank := comm.Size(), comm.Rank()
	value := func(from, to, i int) int32 { return int32(10_000*from + 1000*to + i) }
	for _, n := range []int{1, 2, 7, 8, 50} {
		in, out := make([]int32, n*ranks), make([]int32, n*ranks)
		for i := range in {
			in[i] = value(rank, i/n, i%n)
		}
		if err := mpi.InProgram(allToAll, in, out, n, []int64{0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		for i, got := range out {
			if want := value(i/n, rank, i%n); got != want {
				t.Fatalf("element %d of %d a rank is %d, want %d", i, n, got, want)
			}
		}
	}
}

// TestProgramInParts: the collectives of a program that take several MPI calls are put together
// correctly. Each rank has 0, 1, 2 ... of its own thousand.
func TestProgramInParts(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 3, func(t *testing.T) {
		w := initWorld(t)
		mpi.SetPart(3 * 7)
		mpi.SetChunk(40)
		exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) []*graph.Node {
			all := collective.Over(w)
			return []*graph.Node{
				all.AllToAll(x), all.AllGather(x), all.ReduceScatter(x, collective.Sum), all.AllReduce(x, collective.Sum), all.Broadcast(x, 1), pjrt.AllGatherInPlace(x),
			}
		})
		const part = 50
		value := func(rank, i int) int32 { return int32(1000*rank + i) }
		sum := func(i int) int32 { return value(0, i) + value(1, i) + value(2, i) }
		wants := []func(i int) int32{
			func(i int) int32 { return value(i/part, w.Rank()*part+i%part) },
			func(i int) int32 { return value(i/(3*part), i%(3*part)) },
			func(i int) int32 { return sum(w.Rank()*part + i) }, sum,
			func(i int) int32 { return value(1, i) },
			func(i int) int32 { return value(i/part, i) },
		}
		mine := make([]int32, 3*part)
		for i := range mine {
			mine[i] = value(w.Rank(), i)
		}
		for k, got := range exec.MustCall(mine) {
			for i, x := range tensors.MustCopyFlatData[int32](got) {
				if want := wants[k](i); x != want {
					t.Fatalf("result %d: element %d is %d, want %d", k, i, x, want)
				}
			}
		}
	})
}

// TestHuge: more than 2^31 bytes are summed and sent correctly.
func TestHuge(t *testing.T) {
	ranktest.Run(t, 2, func(t *testing.T) { ranktest.CheckHuge(t, initRank(t), mpi.AllReduce[int32]) })
}

// TestAnyThread: calls come from many goroutines, and so from many threads, one at a time.
// The turn keeps their order the same on all ranks.
func TestAnyThread(t *testing.T) {
	ranktest.Run(t, 2, func(t *testing.T) {
		comm := initRank(t)
		turn := make(chan int, 1)
		turn <- 0
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				i := <-turn
				values := []int64{int64(i)}
				if err := mpi.AllReduce(comm, values); err != nil || values[0] != int64(2*i) {
					t.Errorf("call %d: got %d, %v", i, values[0], err)
				}
				turn <- i + 1
			})
		}
		group.Wait()
	})
}

func TestInitTwice(t *testing.T) {
	ranktest.Run(t, 1, func(t *testing.T) {
		initRank(t)
		if _, err := mpi.Init(nil); err == nil || !strings.Contains(err.Error(), "already initialized") {
			t.Errorf("the second Init: %v", err)
		}
	})
}

// TestErrorNamesTheRank: an MPI error becomes a Go error that names the rank. Here it is a
// broadcast from a rank that doesn't exist.
func TestErrorNamesTheRank(t *testing.T) {
	ranktest.Run(t, 2, func(t *testing.T) {
		comm := initRank(t)
		err := comm.Broadcast([]byte{1}, 7)
		want := fmt.Sprintf("rank %d of 2: MPI_Bcast: ", comm.Rank())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(strings.ToLower(err.Error()), "root") {
			t.Errorf("got %v, want an error with %q and the word root", err, want)
		}
	})
}

// TestGroupsDisagree: if a rank names other groups, all ranks fail before they exchange data. MPI
// would have written the values of three ranks where there is room for two.
func TestGroupsDisagree(t *testing.T) {
	ranktest.Run(t, 4, func(t *testing.T) {
		comm := initRank(t)
		form := []int64{1 << 31, 0, 0, 4, 0, 0, 0, 1, 1, 0, 1, 1} // The groups are 0, 1 and 2, 3.
		if comm.Rank() == 2 {
			form = []int64{2 << 31, 0, 0, 4, 0, 0, 1, 0, 0, 1, 1, 1} // They are 0, 2 and 1, 3.
		}
		const allGather = 3
		err := mpi.InProgram(allGather, []int32{1}, make([]int32, 4), 1, form)
		want := fmt.Sprintf("rank %d of 4: rank %d calls all-gather of 1 int32 in groups #", comm.Rank(), map[bool]int{false: 2}[comm.Rank() == 2])
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

// TestPanicsStayPanics: MPI must not replace Go's signal handlers. A nil pointer dereference must
// stay a panic that can be recovered and shows its line.
func TestPanicsStayPanics(t *testing.T) {
	ranktest.Run(t, 2, func(t *testing.T) {
		initRank(t)
		defer func() {
			if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "nil pointer dereference") {
				t.Errorf("recovered %v", err)
			}
		}()
		var comm *mpi.Comm
		t.Error(comm.Rank())
	})
}

// TestStuckFinalize: a rank ends even if its MPI_Finalize never returns, and says so in a file:
// MPICH's mpiexec then kills the other ranks, and may drop what they all have printed; srun doesn't
// (TestPreflight).
func TestStuckFinalize(t *testing.T) {
	const stuckFile = "TEST_STUCK_FILE"
	if ranktest.InRank() {
		comm, err := mpi.Init(mpi.Candidates(os.Getenv))
		if err != nil {
			t.Fatal(err)
		}
		rank := comm.Rank()
		if rank == 1 { // Rank 0, which waits for it, must not end first.
			mpi.SetFinalizeTime(time.Second)
		}
		err = comm.Close()
		if late := comm.Barrier(); late == nil || !strings.Contains(late.Error(), "MPI is not running") {
			err = fmt.Errorf("a barrier after Close: %w", late)
		}
		if rank == 1 {
			if err := os.WriteFile(os.Getenv(stuckFile), fmt.Append(nil, errors.Is(err, mpi.ErrNotFinalized), " ", err), 0o600); err != nil {
				t.Error(err)
			}
		}
		return
	}
	file := filepath.Join(t.TempDir(), "rank-1")
	out, _ := ranktest.Start(t, ranktest.MPICH, 2, []string{rundir.EnvMPILibrary + "=" + ranktest.StuckMPI(t), stuckFile + "=" + file})
	if said, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(said), "true ") || strings.Contains(out, "--- FAIL") {
		t.Errorf("rank 1 said %q, %v:\n%s", said, err, out)
	}
}

func TestNoLibrary(t *testing.T) {
	_, err := mpi.Init([]string{"libnone.so.1", "/dev/null"})
	if err == nil {
		t.Fatal("there is a library")
	}
	for _, want := range []string{"no MPI library could be opened", "libnone.so.1", "/dev/null", "GONBATCH_MPI_LIBRARY"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestNotAnMPI(t *testing.T) {
	_, err := mpi.Init([]string{"libm.so.6"})
	if err == nil || !strings.Contains(err.Error(), "not an MPI library: no symbol MPI_Init_thread") {
		t.Errorf("got %v", err)
	}
}

func TestCandidates(t *testing.T) {
	tests := []struct {
		name, first string
		env         map[string]string
	}{
		{"told", "/opt/mpi/libmpi.so", map[string]string{"GONBATCH_MPI_LIBRARY": "/opt/mpi/libmpi.so", "PMI_RANK": "0"}},
		{"PMIx", "libmpi.so.40", map[string]string{"PMIX_RANK": "0"}},
		{"mpirun of Open MPI", "libmpi.so.40", map[string]string{"OMPI_COMM_WORLD_SIZE": "2"}},
		{"PMI", "libmpich.so.12", map[string]string{"PMI_RANK": "0", "PMI_SIZE": "2"}},
		{"nothing", "libmpi.so.40", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := mpi.Candidates(func(name string) string { return test.env[name] })
			if got[0] != test.first {
				t.Errorf("first of %v, want %s", got, test.first)
			}
		})
	}
}
