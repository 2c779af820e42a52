// Package onednn opens oneDNN, Intel's library of kernels for deep learning, at run time. On most
// CPUs its convolutions and products of matrices are faster than those of XLA.
//
//	library, err := onednn.Open(onednn.Candidates(os.Getenv))
//	if err != nil { ... } // not installed: XLA computes everything
//	err = pjrt.RegisterKernels("cpu", pjrt.Kernels{Convolution: library.Convolution(), Product: library.Product(), Columns: library.Columns(), Adam: library.Adam(), TrainedProduct: library.TrainedProduct()})
//
// It links no library and needs no header: it knows the C interface of version 3, which all
// libdnnl.so.3 have. The kernels compute one at a time, with as many threads as the calling thread
// may use CPUs, but no more than LimitThreads allows: a team whose members each compute a part. The
// package has two kernels of its own, which run on the same team: the update of Adam, and sums over
// the rows of a matrix.
package onednn

/*
#cgo LDFLAGS: -ldl -lpthread -lm
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"gonbatch/internal/rundir"
)

// Off is the value of GONBATCH_ONEDNN that makes XLA compute everything.
const Off = "off"

// sonames are the names of version 3 in packages of Linux distributions, PyPI and conda.
var sonames = []string{"libdnnl.so.3"}

// Candidates lists the libraries to try. If GONBATCH_ONEDNN is set, it is the only one; if it is
// off, there is none.
func Candidates(getenv func(string) string) []string {
	switch library := getenv(rundir.EnvOneDNN); library {
	case "":
		return sonames
	case Off:
		return nil
	default:
		return []string{library}
	}
}

// Library is the open library. A process can have only one.
type Library struct{ path, version string }

// Path returns the path or soname of the library.
func (l *Library) Path() string { return l.path }

// Version returns the library's version, such as 3.2.0.
func (l *Library) Version() string { return l.version }

// SleepWhileWaiting makes threads that wait for their part of a kernel leave their CPU to other
// work. OpenMP's keep it busy for a millisecond (GCC's) or 200 (LLVM's and Intel's). It must be
// called before Open, and does nothing if OMP_WAIT_POLICY is set.
func SleepWhileWaiting() { C.gb_dnn_sleep_while_waiting() }

// LimitThreads limits the threads that compute, for a process that may use more CPUs than it was
// given. 0 is no limit. A library built for TBB ignores it.
func (l *Library) LimitThreads(n int) {
	C.gb_dnn_lock()
	defer C.gb_dnn_unlock()
	C.gb_dnn.most_threads = C.int(n)
}

// Threads returns how many threads compute for a caller on this thread.
func (l *Library) Threads() int { return int(C.gb_dnn_threads()) }

// ErrNoLibrary is in the chain of Open's error if no library could be opened.
var ErrNoLibrary = errors.New("oneDNN could not be opened")

const errorSize = 1024

var (
	mu     sync.Mutex
	opened *Library
)

// Open opens the first candidate (a path or soname) that can be opened. Later calls return the
// library of the first one.
func Open(candidates []string) (*Library, error) {
	mu.Lock()
	defer mu.Unlock()
	if opened != nil {
		return opened, nil
	}
	var tried []string
	for _, path := range candidates {
		l, err := open(path)
		if err == nil {
			opened = l
			return l, nil
		}
		tried = append(tried, err.Error())
	}
	return nil, fmt.Errorf("%w: %s\ninstall it (PyPI: onednn-cpu-gomp) and set %s to the path of libdnnl.so.3, or set it to %s",
		ErrNoLibrary, strings.Join(tried, "; "), rundir.EnvOneDNN, Off)
}

func open(path string) (*Library, error) {
	var version, text [errorSize]C.char
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if C.gb_dnn_open(name, &version[0], errorSize, &text[0], errorSize) != 0 {
		return nil, errors.New(C.GoString(&text[0]))
	}
	return &Library{path: path, version: C.GoString(&version[0])}, nil
}
