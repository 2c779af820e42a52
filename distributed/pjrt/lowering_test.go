package pjrt_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/compute/xla"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/keyvalue"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/distributed/tcp"
	"gonbatch/internal/plugin"
	"gonbatch/internal/tier"
)

// lowering is the variable that selects the lowering in the ranks of a test.
const lowering = "LOWERING"

// openers open a backend on each rank, by lowering.
var openers = map[string]func(t *testing.T) (rank int, backend compute.Backend){
	"mpi": func(t *testing.T) (int, compute.Backend) {
		comm, backend := open(t)
		return comm.Rank(), backend
	},
	"tcp": func(t *testing.T) (int, compute.Backend) {
		comm := joinRing(t)
		return comm.Rank(), openOnRing(t, comm)
	},
	"native": func(t *testing.T) (int, compute.Backend) {
		processes, backend := openNative(t)
		return processes.Rank, backend
	},
}

// everyLowering runs the body on two ranks with each lowering, which must make no difference.
func everyLowering(t *testing.T, body func(t *testing.T, rank int, backend compute.Backend)) {
	t.Helper()
	if ranktest.InRank() {
		rank, backend := openers[os.Getenv(lowering)](t)
		body(t, rank, backend)
		return
	}
	ranktest.RunWith(t, tier.Fewer([]ranktest.Launcher{
		ranktest.OpenMPI.With(" by MPI", lowering+"=mpi"), ranktest.Torchrun.With(" over TCP", lowering+"=tcp"),
		ranktest.Torchrun.OnGPUs(t, 2).With(" by XLA", lowering+"=native"), ranktest.MPICH.With(" by MPI", lowering+"=mpi"),
	}, 3), 2, nil)
}

// joinRing connects the ranks by TCP.
func joinRing(t *testing.T) *tcp.Comm {
	t.Helper()
	number := func(name string) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	comm, err := tcp.Init(t.Context(), tcp.Config{Rank: number("RANK"), Size: number("WORLD_SIZE"), Master: net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT")), Local: true})
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

func openOnRing(t *testing.T, comm *tcp.Comm) compute.Backend {
	t.Helper()
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	if err := pjrt.RegisterTransport("cpu", pjrt.Transport(comm.Transport()), comm.Size()); err != nil {
		t.Fatal(err)
	}
	return newBackend(t, "cpu", xlapjrt.NamedValuesMap{"cpu_device_count": int64(1)})
}

func newBackend(t *testing.T, platform string, options xlapjrt.NamedValuesMap) compute.Backend {
	t.Helper()
	backend, err := tryBackend(platform, options)
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

func tryBackend(platform string, options xlapjrt.NamedValuesMap) (compute.Backend, error) {
	xla.EnableAutoInstall(false)
	return xla.NewWithOptions(platform, options)
}

// joinNative loads the test plugin, and makes XLA connect the ranks.
func joinNative(t *testing.T) pjrt.Processes {
	t.Helper()
	comm := joinRing(t)
	place := make([]byte, 4096)
	if comm.Rank() == 0 {
		server, err := keyvalue.Listen(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		text, err := json.Marshal(server.Place())
		if err != nil {
			t.Fatal(err)
		}
		copy(place, text)
	}
	if err := comm.Broadcast(place, 0); err != nil {
		t.Fatal(err)
	}
	var p keyvalue.Place
	if err := json.NewDecoder(strings.NewReader(string(place))).Decode(&p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // Rank 0 has the store, so it stays until all ranks have finished.
		if err := comm.Barrier(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	if err := pjrt.Load(plugin.CUDA, filepath.Join(os.Getenv("GONBATCH_PLUGIN_DIR"), plugin.FileName(plugin.CUDA))); err != nil {
		t.Fatal(err)
	}
	processes := pjrt.Processes{Rank: comm.Rank(), Size: comm.Size(), Store: keyvalue.Dial(comm.Rank(), p)}
	if err := pjrt.Join(plugin.CUDA, processes); err != nil {
		t.Fatal(err)
	}
	return processes
}

func openNative(t *testing.T) (pjrt.Processes, compute.Backend) {
	t.Helper()
	processes := joinNative(t)
	options := xlapjrt.NamedValuesMap{"visible_devices": []int64{int64(processes.Rank)}}
	for name, value := range processes.ClientOptions() {
		options[name] = value
	}
	return processes, newBackend(t, plugin.CUDA, options)
}

// onNative runs the body on two ranks that XLA connects.
func onNative(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if ranktest.InRank() {
		body(t)
		return
	}
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun.OnGPUs(t, 2)}, 2, body)
}

// sumOn compiles and runs a program with an all-reduce.
func sumOn(backend compute.Backend) error {
	exec, err := graph.NewExec(backend, pjrt.AllReduceSum)
	if err == nil {
		_, err = exec.Call1([]float32{1, 2})
	}
	return err
}

// TestOptionsMatter: the test plugin refuses options with which XLA would hang or compute wrong
// results.
func TestOptionsMatter(t *testing.T) {
	onNative(t, func(t *testing.T) {
		_, backend := openNative(t)
		tests := []struct {
			name   string
			tamper pjrt.Tampering
			want   string
		}{
			{"another order of devices", pjrt.Tampering{Devices: []int64{0, 1}}, "replica 0 is on device 0, want process 0's device 1"},
			{"a device too many", pjrt.Tampering{Devices: []int64{1, 0, 2}}, "a collective over 2 devices, and num_replicas is 3"},
			{"one's own device alone", pjrt.Tampering{Devices: []int64{1}}, "a collective over 2 devices, and num_replicas is 1"},
			{"sharded autotuning", pjrt.Tampering{Sharded: true}, "xla_gpu_shard_autotuning is on"},
			{"as it is", pjrt.Tampering{}, ""},
		}
		for _, test := range tests {
			pjrt.Tamper(test.tamper)
			if err := sumOn(backend); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %q", test.name, err, test.want)
			}
		}
	})
}

// TestWatched: each collective of a program is reported when the program begins and when it ends.
func TestWatched(t *testing.T) {
	onNative(t, func(t *testing.T) {
		_, backend := openNative(t)
		var entered, left []string
		pjrt.SetEnter(func(kind, dtype, count, _ int) func(error) error {
			what := strconv.Itoa(kind) + ":" + strconv.Itoa(dtype) + "x" + strconv.Itoa(count)
			entered = append(entered, what)
			return func(err error) error {
				if err != nil {
					what += " " + err.Error()
				}
				left = append(left, what)
				return err
			}
		})
		exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
			half := graph.ConvertDType(x, dtypes.BFloat16)
			return []*graph.Node{pjrt.AllReduceSum(x), pjrt.AllReduceSum(graph.ConvertDType(graph.ReduceAllSum(x), dtypes.Int64)), pjrt.AllGather(half), pjrt.ReduceScatterSum(x)}
		})
		plain := graph.MustNewExec(backend, graph.Neg)
		for range 3 {
			plain.MustCall1([]float32{1})
			exec.MustCall([]float32{1, 2, 3, 4})
		}
		want := strings.Repeat("1:11x4 1:5x1 3:16x4 5:11x2 ", 3)
		if got := strings.Join(entered, " ") + " "; got != want {
			t.Errorf("entered %s, want %s", got, want)
		}
		if got := strings.Join(left, " ") + " "; got != want {
			t.Errorf("left %s, want %s", got, want)
		}
	})
}

// TestClientsAlone: a client that the program creates for itself has no other ranks. It can
// compute, but all-reduces are refused.
func TestClientsAlone(t *testing.T) {
	onNative(t, func(t *testing.T) {
		processes := joinNative(t)
		backend := newBackend(t, plugin.CUDA, xlapjrt.NamedValuesMap{"visible_devices": []int64{int64(processes.Rank)}})
		if got := graph.MustNewExec(backend, graph.Neg).MustCall1(float32(3)).Value(); got != float32(-3) {
			t.Errorf("-3 is %v", got)
		}
		if err := sumOn(backend); err == nil || !strings.Contains(err.Error(), "this backend has no other ranks: use World.Backend()") {
			t.Errorf("got %v", err)
		}
	})
}

// TestRankMissing: if a rank leaves while it waits for another, its error names what it waited for.
func TestRankMissing(t *testing.T) {
	onNative(t, func(t *testing.T) {
		processes := joinNative(t)
		if processes.Rank == 1 {
			return // The barrier at the end waits for rank 0.
		}
		go func() {
			_, _ = processes.Store.Get("local_topology/cuda/0", time.Hour) // By now the client looks for the others.
			processes.Store.Close()
		}()
		_, err := tryBackend(plugin.CUDA, processes.ClientOptions())
		if want := regexp.MustCompile(`rank 0: (put|get) "local_topology/cuda/[01]": this rank has left the job`); err == nil || !want.MatchString(err.Error()) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}
