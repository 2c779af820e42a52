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
)

// Processes are the ranks of a job, each with one device, as XLA's own clients see them.
type Processes struct {
	Rank, Size int
	// Store is what the clients find one another by.
	Store *keyvalue.Store
	// Enter is told of each collective, by its element type (an xla::PrimitiveType) and size, when
	// a program that has it begins. The function that it returns is called when that program is
	// through, with its error.
	Enter func(dtype, count int) (leave func(error) error)
}

// Join makes XLA itself connect the ranks, in place of a transport: AllReduceSum becomes XLA's own
// collective. Clients that are created from then on with the options of ClientOptions find those of
// the other ranks, and block until these are there. The plugin must have been loaded.
func Join(platform string, p Processes) error {
	mu.Lock()
	defer mu.Unlock()
	if _, ok := loaded[platform]; !ok {
		return fmt.Errorf("pjrt: no XLA plugin is loaded for %q: call Load first", platform)
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

// ClientOptions are those by which XLA creates a client that is one of several.
func (p Processes) ClientOptions() map[string]any {
	return map[string]any{"node_id": int64(p.Rank), "num_nodes": int64(p.Size)}
}

// processes is what is known of them.
type processes struct {
	Processes

	mu sync.Mutex
	// assignments are, for each client, the devices of all ranks, by rank.
	assignments map[unsafe.Pointer][]int64
	// programs are those that were loaded and have collectives.
	programs map[unsafe.Pointer][]collective
}

// theProcesses are those of this process' job: XLA's callbacks come here.
var theProcesses atomic.Pointer[processes]

// devices are those of all ranks, by rank; nil if the client is not one of several.
func (p *processes) devices(client unsafe.Pointer) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.assignments[client]
}

// maxDevices bounds the devices of a job.
const maxDevices = 1 << 16

// deviceMap finds each rank's device. XLA numbers devices by where they are in the network, so the
// rank's number says nothing.
func (p *processes) deviceMap(client unsafe.Pointer) ([]int64, error) {
	ids, of := make([]C.int64_t, maxDevices), make([]C.int, maxDevices)
	n := int(C.gb_client_devices(client, &ids[0], &of[0], maxDevices))
	if n < 0 || n > maxDevices {
		return nil, errors.New("the plugin does not say which devices the ranks have")
	}
	devices, found := make([]int64, p.Size), make([]int, p.Size)
	for i := range n {
		rank := int(of[i])
		if rank < 0 || rank >= p.Size {
			return nil, fmt.Errorf("device %d belongs to process %d: there are %d ranks", ids[i], rank, p.Size)
		}
		devices[rank] = int64(ids[i])
		found[rank]++
	}
	for rank, number := range found {
		if number != 1 {
			return nil, fmt.Errorf("rank %d has %d devices in XLA's eyes: each rank must have one", rank, number)
		}
	}
	return devices, nil
}

// gonbatchClientCreated is called by clients.c for a client that has found the others. It returns
// nil, or why the client can't be used, in memory of C's malloc.
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
