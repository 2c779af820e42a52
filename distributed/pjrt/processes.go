package pjrt

/*
#include <stdlib.h>
#include "clients.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"gonbatch/distributed/keyvalue"
	"gonbatch/internal/plural"
)

// Processes describes the ranks of a job, each with one device, for XLA's own clients.
type Processes struct {
	Rank, Size int
	// Store is the store through which the clients find one another.
	Store *keyvalue.Store
	// Enter is called for each collective of a program when the program begins, with the arguments
	// of a Transport. detail is the first number of its form, 0 if it has none. The function that
	// it returns is called with the program's error when the program ends.
	Enter func(kind, dtype, count, detail int) (leave func(error) error)
}

// Join makes XLA itself connect the ranks, instead of a transport: the collectives of programs
// become XLA's own. Clients that are created later with the options of
// ClientOptions find those of the other ranks, and block until all exist. The plugin must be
// loaded.
func Join(platform string, p Processes) error {
	mu.Lock()
	defer mu.Unlock()
	if err := checkLoaded(platform); err != nil {
		return err
	}
	joined := &processes{Processes: p, assignments: map[unsafe.Pointer][]int64{}, programs: map[unsafe.Pointer][]collective{}}
	if err := checkWorld(p.Size); err != nil {
		return err
	}
	setWorld(native{joined}, p.Size)
	theProcesses.Store(joined)
	C.gb_clients_join()
	return nil
}

// ClientOptions returns the options with which XLA creates one of several clients.
func (p Processes) ClientOptions() map[string]any {
	return map[string]any{"node_id": int64(p.Rank), "num_nodes": int64(p.Size)}
}

// processes adds what is known about their clients and programs.
type processes struct {
	Processes

	mu sync.Mutex
	// assignments has the devices of all ranks for each client, in order of rank.
	assignments map[unsafe.Pointer][]int64
	// programs has the loaded programs with collectives.
	programs map[unsafe.Pointer][]collective
}

// theProcesses are the processes of this process's job, for XLA's callbacks.
var theProcesses atomic.Pointer[processes]

// devices returns the devices of all ranks, in order of rank, or nil if the client is not one of
// several.
func (p *processes) devices(client unsafe.Pointer) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.assignments[client]
}

// maxDevices limits the devices of a job.
const maxDevices = 1 << 16

// deviceMap finds each rank's device. XLA numbers devices by their place in the network, not by
// rank.
func (p *processes) deviceMap(client unsafe.Pointer) ([]int64, error) {
	ids, of := make([]C.int64_t, maxDevices), make([]C.int, maxDevices)
	n := int(C.gb_client_devices(client, &ids[0], &of[0], maxDevices))
	if n < 0 || n > maxDevices {
		return nil, errors.New("the plugin does not report the devices of the ranks")
	}
	devices, found := make([]int64, p.Size), make([]int, p.Size)
	for i := range n {
		rank := int(of[i])
		if rank < 0 || rank >= p.Size {
			return nil, fmt.Errorf("device %d belongs to process %d: there are %s", ids[i], rank, plural.Of(p.Size, "rank"))
		}
		devices[rank] = int64(ids[i])
		found[rank]++
	}
	for rank, number := range found {
		if number != 1 {
			return nil, fmt.Errorf("rank %d has %s according to XLA: each rank must have one", rank, plural.Of(number, "device"))
		}
	}
	return devices, nil
}

// gonbatchClientCreated is called by clients.c for a client that has found the others. It returns
// nil, or the reason why the client can't be used, in memory from C's malloc.
//
//export gonbatchClientCreated
func gonbatchClientCreated(client unsafe.Pointer) *C.char {
	p := theProcesses.Load()
	devices, err := p.deviceMap(client)
	if err != nil {
		return C.CString(fmt.Sprintf("gonbatch: rank %d of %d: %v", p.Rank, p.Size, err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.assignments[client] = devices
	return nil
}
