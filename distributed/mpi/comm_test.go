package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonbatch/distributed/mpi"
	"gonbatch/distributed/ranktest"
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

func TestCollectives(t *testing.T) {
	ranktest.Run(t, 3, func(t *testing.T) {
		comm := initRank(t)
		if comm.Size() != 3 || comm.Version() == "" {
			t.Fatalf("rank %d of %d, %q", comm.Rank(), comm.Size(), comm.Version())
		}
		checkSum[float32](t, comm)
		checkSum[float64](t, comm)
		checkSum[int32](t, comm)
		checkSum[int64](t, comm)
		type named float32
		checkSum[named](t, comm)
		if err := mpi.AllReduce(comm, []float32{}); err != nil {
			t.Error(err)
		}

		message := []byte(fmt.Sprintf("from rank %d", comm.Rank()))
		if err := comm.Broadcast(message, 2); err != nil || string(message) != "from rank 2" {
			t.Errorf("broadcast: %q, %v", message, err)
		}
		all, err := comm.AllGather([]byte{byte(comm.Rank()), 9})
		if err != nil || !slices.EqualFunc(all, [][]byte{{0, 9}, {1, 9}, {2, 9}}, slices.Equal) {
			t.Errorf("all-gather: %v, %v", all, err)
		}
		if err := comm.Barrier(); err != nil {
			t.Error(err)
		}
	})
}

// TestGatherInParts: data of more than one call of MPI comes together again.
func TestGatherInParts(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 3, func(t *testing.T) {
		comm := initRank(t)
		mpi.SetMaxGather(3 * 7)
		for _, n := range []int{0, 1, 6, 7, 8, 14, 20} {
			mine := make([]byte, n)
			for i := range mine {
				mine[i] = byte(100*comm.Rank() + i)
			}
			all, err := comm.AllGather(mine)
			if err != nil || len(all) != 3 {
				t.Fatalf("%d parts, %v", len(all), err)
			}
			for rank, data := range all {
				for i := range n {
					if len(data) != n || data[i] != byte(100*rank+i) {
						t.Fatalf("%d bytes of rank %d: %v", n, rank, data)
					}
				}
			}
		}
	})
}

// checkSum reduces sizes around those at which the libraries change their algorithm.
func checkSum[T mpi.Number](t *testing.T, comm *mpi.Comm) {
	t.Helper()
	for _, n := range []int{1, 7, 1024, 421642} {
		values := make([]T, n)
		for i := range values {
			values[i] = T(i%100) * T(comm.Rank()+1)
		}
		if err := mpi.AllReduce(comm, values); err != nil {
			t.Fatal(err)
		}
		for i, got := range values {
			if want := T(i%100) * 6; got != want {
				t.Fatalf("%T: element %d of %d: got %v, want %v", values, i, n, got, want)
			}
		}
	}
}

// Calls come from many goroutines, thus threads; MPI sees one. The order is kept the same on all
// ranks by handing over one after the other.
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
		comm := initRank(t)
		if _, err := mpi.Init(nil); err == nil || !strings.Contains(err.Error(), "already initialised") {
			t.Errorf("the second Init: %v", err)
		}
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
		if err := comm.Barrier(); err == nil || !strings.Contains(err.Error(), "rank 0 of 1: MPI is not running") {
			t.Errorf("Barrier after Close: %v", err)
		}
	})
}

// An error of MPI comes back as a Go error that names the rank: here a broadcast from a rank that
// doesn't exist.
func TestErrorNamesTheRank(t *testing.T) {
	ranktest.Run(t, 2, func(t *testing.T) {
		comm := initRank(t)
		err := comm.Broadcast([]byte{1}, 7)
		want := fmt.Sprintf("rank %d of 2: MPI_Bcast: ", comm.Rank())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(strings.ToLower(err.Error()), "root") {
			t.Errorf("got %v, want it to have %q and the word root", err, want)
		}
	})
}

// MPI must not take Go's signal handlers away: a nil pointer stays a panic that can be recovered
// and shows its line.
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

func TestNoLibrary(t *testing.T) {
	_, err := mpi.Init([]string{"libnone.so.1", "/dev/null"})
	if !errors.Is(err, mpi.ErrNoLibrary) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"libnone.so.1", "/dev/null", "GONBATCH_MPI_LIBRARY"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
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
