package pjrt_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	xlapjrt "github.com/gomlx/go-xla/pjrt"

	"gonbatch/distributed/pjrt"
)

// buffer is larger than the pieces of an arena of its own.
const buffer = 96 << 20

// TestKeepsFreedMemory: a step that allocates large buffers does not fault their pages in again.
func TestKeepsFreedMemory(t *testing.T) {
	client := cpuClient(t)
	exec, err := client.Compile().WithStableHLO(fmt.Appendf(nil, `module @m {
  func.func @main(%%x: tensor<f32>) -> tensor<%dxf32> {
    %%0 = "stablehlo.broadcast_in_dim"(%%x) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<%[1]dxf32>
    "stablehlo.return"(%%0) : (tensor<%[1]dxf32>) -> ()
  }
}
`, buffer/4)).Done()
	if err != nil {
		t.Fatal(err)
	}
	x, err := client.BufferFromHost().FromFlatDataWithDimensions([]float32{1}, nil).Done()
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		runtime.LockOSThread() // A thread for each step: with arenas of their own, they would take the memory from those.
		out, err := exec.Execute(x).Done()
		if err != nil {
			t.Error(err)
			return
		}
		if err := out[0].Destroy(); err != nil {
			t.Error(err)
		}
	}
	inThreadOfItsOwn(step)
	before := faults(t)
	const steps = 10
	for range steps {
		inThreadOfItsOwn(step)
	}
	// With huge pages, a buffer takes 48 faults.
	if got := faults(t) - before; got > steps*buffer/(2<<20)/2 {
		t.Errorf("%d page faults in %d steps", got, steps)
	}
}

// inThreadOfItsOwn calls a function that locks its thread, which ends with it.
func inThreadOfItsOwn(f func()) {
	var group sync.WaitGroup
	group.Go(f)
	group.Wait()
}

// faults counts those of this process so far.
func faults(t *testing.T) int64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Minflt
}

// TestBuffersTakeLittleMore: while buffers of random sizes come and go, small ones between large
// ones, the process has little more memory than they need.
func TestBuffersTakeLittleMore(t *testing.T) {
	const large, small, most = 16, 2048, 192 << 20
	client := cpuClient(t)
	random := rand.New(rand.NewPCG(1, 1))
	data := slices.Repeat([]float32{1}, 36<<20/4)
	buffers, sizes := make([]*xlapjrt.Buffer, large+small), make([]int, large+small)
	before, live, peak := resident(t), 0, int64(0)
	for range 10000 {
		i, size := large+random.IntN(small), 16+random.IntN(1<<random.IntN(16))
		if random.IntN(10) == 0 {
			i, size = random.IntN(large), (4<<20+random.IntN(32<<20))/4
		}
		switch {
		case buffers[i] != nil:
			live -= 4 * sizes[i]
			destroy(t, buffers[i])
			buffers[i] = nil
		case live+4*size <= most:
			live += 4 * size
			buffers[i], sizes[i] = bufferOf(t, client, data[:size]), size
			peak = max(peak, resident(t)-before)
		}
	}
	for _, b := range buffers {
		if b != nil {
			destroy(t, b)
		}
	}
	if peak > most*5/4+64<<20 {
		t.Errorf("%d MB for buffers of %d MB", peak>>20, most>>20)
	}
}

func bufferOf(t *testing.T, client *xlapjrt.Client, data []float32) *xlapjrt.Buffer {
	t.Helper()
	b, err := client.BufferFromHost().FromFlatDataWithDimensions(data, []int{len(data)}).Done()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func destroy(t *testing.T, b *xlapjrt.Buffer) {
	t.Helper()
	if err := b.Destroy(); err != nil {
		t.Fatal(err)
	}
}

// TestHugePages: a large buffer is in memory that may have huge pages, a small one need not be.
func TestHugePages(t *testing.T) {
	client := cpuClient(t)
	b := bufferOf(t, client, make([]float32, buffer/4))
	defer destroy(t, b)
	pointer, err := b.UnsafePointer()
	if err != nil {
		t.Fatal(err)
	}
	if flags := flagsOf(t, uintptr(pointer)+buffer/2); !slices.Contains(flags, "hg") {
		t.Errorf("the memory of a buffer of %d MB has the flags %v, not hg", buffer>>20, flags)
	}
}

// flagsOf are the flags that the kernel has for the memory at an address.
func flagsOf(t *testing.T, address uintptr) []string {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	within := false
	for line := range strings.Lines(string(smaps)) {
		var begin, end uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &begin, &end); n == 2 {
			within = begin <= address && address < end
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && within {
			return strings.Fields(flags)
		}
	}
	t.Fatalf("no memory at %x", address)
	return nil
}

func cpuClient(t *testing.T) *xlapjrt.Client {
	t.Helper()
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	plugin, err := xlapjrt.GetPlugin("cpu")
	if err != nil {
		t.Fatal(err)
	}
	client, err := plugin.NewClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Destroy() })
	return client
}
