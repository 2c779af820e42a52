// Package mpi opens the cluster's own MPI library at run time and provides the few collectives that
// data-parallel training needs.
//
// It links no MPI library and needs no header: one binary works with Open MPI and with every MPI of
// the MPICH ABI (MPICH, Intel MPI, Cray MPICH, MVAPICH). Calls may come from any goroutine or
// thread: MPI gets one at a time.
//
//	comm, err := mpi.Init(mpi.Candidates(os.Getenv))
//	if err != nil { ... }
//	defer comm.Close()
//	err = comm.AllReduce(values) // every rank now has the sum
//
// It is not an MPI binding: it has no communicators and no point-to-point messages. Specification:
// MPI 3.1, https://www.mpi-forum.org/docs/.
package mpi

/*
#cgo LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "mpi.h"
#include "yield.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"gonbatch/internal/rundir"
)

func init() { C.gb_yield_begin() }

// OnGPUs leaves sched_yield as it is in the C library, in the whole program. Without it, a thread
// that has waited in a loop of sched_yield for a millisecond sleeps for up to a millisecond at a
// time. NCCL's threads wait that way for messages that come every few microseconds.
func OnGPUs() { C.gb_yield_end() }

// Comm is the world communicator of this process. A process can have only one in its lifetime.
type Comm struct {
	rank, size       int
	library, version string
	finalize         chan chan<- error // The goroutine that has initialized MPI finalizes it.
	close            sync.Once
	closeErr         error
}

const errorSize = 4096

var initialised sync.Mutex // Stays locked after MPI_Init_thread: MPI can't be initialised twice.

// Init opens the first candidate library (a path or soname) that can be opened, and initialises
// MPI. It blocks until all ranks have called it.
func Init(candidates []string) (*Comm, error) {
	if !initialised.TryLock() {
		return nil, errors.New("mpi: already initialized: MPI connects the ranks of a process only once: call distributed.Init once, at the beginning of main")
	}
	library, err := open(candidates)
	if err != nil {
		initialised.Unlock()
		return nil, err
	}
	c := &Comm{library: library, finalize: make(chan chan<- error)}
	initialized := make(chan error)
	go c.run(initialized)
	if err := <-initialized; err != nil {
		return nil, err
	}
	return c, nil
}

// run initializes MPI, and finalizes it when Close asks for that: MPI wants both from one thread.
func (c *Comm) run(initialized chan<- error) {
	runtime.LockOSThread()
	var rank, size C.int
	var version [512]C.char
	var text [errorSize]C.char
	if C.gb_mpi_init(&rank, &size, &version[0], C.size_t(len(version)), &text[0], errorSize) != 0 {
		initialized <- fmt.Errorf("mpi: %s: %s", c.library, C.GoString(&text[0]))
		return
	}
	c.rank, c.size, c.version = int(rank), int(size), C.GoString(&version[0])
	initialized <- nil
	done := <-c.finalize
	done <- c.call(C.GB_MPI_FINALIZE, nil, nil, 0, C.GB_BYTE, 0)
}

func open(candidates []string) (string, error) {
	var tried []string
	for _, library := range candidates {
		var text [errorSize]C.char
		name := C.CString(library)
		failed := C.gb_mpi_open(name, &text[0], errorSize) != 0
		C.free(unsafe.Pointer(name))
		if !failed {
			return library, nil
		}
		tried = append(tried, C.GoString(&text[0]))
	}
	return "", fmt.Errorf("mpi: no MPI library could be opened: %s\nload your site's MPI module, install one (Debian: apt-get install openmpi-bin, or mpich), or set %s to the path of libmpi.so",
		strings.Join(tried, "; "), rundir.EnvMPILibrary)
}

// Rank returns this process's number, from 0 to Size()-1.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Comm) Size() int { return c.size }

// Library returns the path or soname of the library in use.
func (c *Comm) Library() string { return c.library }

// Version returns the first line of the library's description of itself.
func (c *Comm) Version() string { return c.version }

// AllReduce replaces the values on every rank with their sum over all ranks, element by element.
// Every rank must call it with the same length, in the same order relative to its other
// collectives.
func (c *Comm) AllReduce(values []float64) error {
	if len(values) == 0 {
		return nil
	}
	return c.call(C.GB_MPI_ALL_REDUCE, nil, unsafe.Pointer(&values[0]), len(values), C.GB_FLOAT64, 0)
}

// Broadcast replaces the data on every rank with the root's. All ranks must pass the same length.
func (c *Comm) Broadcast(data []byte, root int) error {
	if len(data) == 0 {
		return nil
	}
	return c.call(C.GB_MPI_BROADCAST, nil, unsafe.Pointer(&data[0]), len(data), C.GB_BYTE, root)
}

// AllGather returns the data of every rank, in order of rank. All ranks must pass the same length.
func (c *Comm) AllGather(data []byte) ([][]byte, error) {
	flat := make([]byte, len(data)*c.size)
	if len(data) > 0 {
		if err := c.call(C.GB_MPI_ALL_GATHER, unsafe.Pointer(&data[0]), unsafe.Pointer(&flat[0]), len(data), C.GB_BYTE, 0); err != nil {
			return nil, err
		}
	}
	all := make([][]byte, c.size)
	for i := range all {
		all[i] = flat[i*len(data) : (i+1)*len(data) : (i+1)*len(data)]
	}
	return all, nil
}

// Barrier returns when all ranks have called it.
func (c *Comm) Barrier() error {
	return c.call(C.GB_MPI_BARRIER, nil, nil, 0, C.GB_BYTE, 0)
}

func (c *Comm) call(kind int, send, data unsafe.Pointer, count, dtype, root int) error {
	var text [errorSize]C.char
	// C keeps no pointer: the call returns when MPI no longer uses the memory.
	var pin runtime.Pinner
	defer pin.Unpin()
	if send != nil {
		pin.Pin(send)
	}
	if data != nil {
		pin.Pin(data)
	}
	form := [4]C.int64_t{C.int64_t(root) << 2, 0, C.int64_t(root), 0} // See Transport in package pjrt.
	if C.gb_mpi_transport(C.int(kind), send, data, C.int64_t(count), C.int(dtype), &form[0], &text[0], errorSize) != 0 {
		return fmt.Errorf("mpi: %s", C.GoString(&text[0]))
	}
	return nil
}

// memoryShare keeps what MPI copies of a rank's share of a reduction in the cache of its core.
const memoryShare = 256 << 10

// InMemory makes reductions of large values faster if all ranks are on this machine. All ranks must
// call it between the same collectives.
func (c *Comm) InMemory() { C.gb_mpi_share = memoryShare }

// Crowded says that some machine has more ranks than CPUs, so that a rank leaves its CPU to the
// others while it waits for them. All ranks must call it between the same collectives.
func (c *Comm) Crowded() { C.gb_mpi_crowded() }

// Transport returns the C function that compiled programs call for collectives. See Transport in
// package pjrt.
func (c *Comm) Transport() unsafe.Pointer {
	return C.gb_mpi_transport
}

// finalizeTime limits how long a rank waits for MPI_Finalize after all ranks have called Close.
var finalizeTime = 30 * time.Second

// ErrNotFinalized is Close's error if MPI_Finalize does not return: MPICH's UCX sometimes waits for
// a rank that has already left. All ranks have finished their work by then, so the process should
// exit.
var ErrNotFinalized = errors.New("mpi: MPI_Finalize does not return")

// Close finalizes MPI. All ranks must call it. The Comm can't be used afterwards. A second call
// does nothing.
func (c *Comm) Close() error {
	c.close.Do(func() { c.closeErr = c.end() })
	return c.closeErr
}

func (c *Comm) end() error {
	if err := c.call(C.GB_MPI_END, nil, nil, 0, C.GB_BYTE, 0); err != nil {
		return err
	}
	done := make(chan error, 1)
	c.finalize <- done
	select {
	case err := <-done:
		return err
	case <-time.After(finalizeTime):
		return ErrNotFinalized
	}
}
