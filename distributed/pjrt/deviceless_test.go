package pjrt_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/internal/fetch"
)

// TestCompilesForGPUs: XLA's own compiler for CUDA, which needs no GPU, takes the programs of 8 and
// 16 ranks on H100, and has the all-reduces that it should have, one after the other.
func TestCompilesForGPUs(t *testing.T) {
	if ranktest.InRank() { // A process has one world.
		writeStep(t, os.Getenv("FOLDER"))
		return
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skipf("there is no CUDA plugin for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	compiler := cudaCompiler(t)
	for topology, ranks := range map[string]int{"1x1x8": 8, "1x2x8": 16} {
		t.Run(topology, func(t *testing.T) {
			folder := t.TempDir()
			if out, err := ranktest.Start(t, ranktest.Torchrun, 1, []string{"FOLDER=" + folder, fmt.Sprintf("RANKS=%d", ranks)}); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			checkSchedule(t, compiler.compile(t, folder, topology), ranks)
		})
	}
}

// writeStep leaves a training step, with gradients of two types, and the options by which XLA
// compiles it, in the folder.
func writeStep(t *testing.T, folder string) {
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	var ranks int
	if _, err := fmt.Sscan(os.Getenv("RANKS"), &ranks); err != nil {
		t.Fatal(err)
	}
	written := 0
	pjrt.UseCapture(ranks, func(program, options []byte) {
		written++
		for name, text := range map[string][]byte{"step.mlir": program, "options": options} {
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o666); err != nil {
				t.Error(err)
			}
		}
	})
	exec := graph.MustNewExec(newBackend(t, "cpu", xlapjrt.NamedValuesMap{"cpu_device_count": int64(1)}), func(x, w, v *graph.Node) []*graph.Node {
		hidden := graph.Tanh(graph.MatMul(x, w))
		out := graph.MatMul(graph.ConvertDType(hidden, dtypes.Float64), v)
		gradients := graph.Gradient(graph.ReduceAllSum(graph.Square(out)), w, v)
		return []*graph.Node{graph.Sub(w, pjrt.AllReduceMean(gradients[0])), graph.Sub(v, pjrt.AllReduceMean(gradients[1])), pjrt.AllReduceSum(graph.ReduceAllSum(out))}
	})
	_, err := exec.Compile(shapes.Make(dtypes.Float32, 64, 256), shapes.Make(dtypes.Float32, 256, 256), shapes.Make(dtypes.Float64, 256, 10))
	if written != 1 || err == nil || !strings.Contains(err.Error(), "captured") {
		t.Errorf("%d programs written, %v", written, err)
	}
}

// The all-reduces of a program, and, where they run beside the computation, their beginnings and
// ends in the schedule.
var (
	allReduce = regexp.MustCompile(`(?m)^ +(?:ROOT )?%\S+ = \S+ all-reduce\(.*replica_groups=(\S+),`)
	asyncPart = regexp.MustCompile(`(?m)^ +(?:ROOT )?%all-reduce-(start|done)\S* = `)
)

// checkSchedule: as many all-reduces as the program has, over all ranks, one after the other.
func checkSchedule(t *testing.T, scheduled string, ranks int) {
	t.Helper()
	var group []string
	for rank := range ranks {
		group = append(group, fmt.Sprint(rank))
	}
	all := allReduce.FindAllStringSubmatch(scheduled, -1)
	if len(all) != 3 || !strings.Contains(scheduled, "is_scheduled=true") {
		t.Errorf("%d all-reduces, want 3 in a scheduled program:\n%s", len(all), scheduled)
	}
	for _, m := range all {
		if want := "{{" + strings.Join(group, ",") + "}}"; m[1] != want {
			t.Errorf("an all-reduce over %s, want %s", m[1], want)
		}
	}
	running := 0
	for _, m := range asyncPart.FindAllStringSubmatch(scheduled, -1) {
		if m[1] == "done" {
			running--
		} else if running++; running > 1 {
			t.Errorf("all-reduces overlap, so XLA may order them as it likes:\n%s", scheduled)
		}
	}
}

// compiler is XLA's for CUDA, with NVIDIA's assembler, and the program that calls it.
type compiler struct{ program, plugin, cuda string }

// cudaCompiler gets the compiler, of the versions that jobs use, once for all tests.
func cudaCompiler(t *testing.T) compiler {
	t.Helper()
	cache := installCompiler(t, cudaPins(t))
	list, err := bounded.Output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla"))
	if err != nil {
		t.Fatal(err)
	}
	c := compiler{filepath.Join(t.TempDir(), "deviceless"), filepath.Join(cache, "jax_plugins/xla_cuda13/xla_cuda_plugin.so"), filepath.Join(cache, "nvidia/cu13")}
	if out, err := exec.Command("cc", "-I", filepath.Join(strings.TrimSpace(string(list)), "pjrt"), "-o", c.program, "testdata/deviceless.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c
}

// installCompiler returns the folder with the wheels, which is made once.
func installCompiler(t *testing.T, pins string) string {
	t.Helper()
	cache, err := filepath.Abs(filepath.Join("..", "..", ".cache", fmt.Sprintf("cuda-compiler-%.8x", sha256.Sum256([]byte(pins)))))
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := fetch.Lock(t.Context(), cache, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	whole := filepath.Join(cache, "whole")
	if _, err := os.Stat(whole); err == nil {
		return cache
	}
	if err := fetch.PipInstall(t.Context(), "XLA's compiler for CUDA", pins, cache, fetch.Options{Progress: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(whole, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return cache
}

// cudaPins are those of internal/plugin that a compilation needs.
func cudaPins(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/plugin/cuda-requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	wheel, err := os.ReadFile("../../internal/plugin/cuda.go")
	if err != nil {
		t.Fatal(err)
	}
	pins := regexp.MustCompile(`(?m)^nvidia-(cuda-nvcc|nvvm)==.*$`).FindAllString(string(text), -1)
	m := regexp.MustCompile(`Requirement: "(.*)",\n\tSHA256: +"(.*)"`).FindStringSubmatch(string(wheel))
	if len(pins) != 2 || m == nil {
		t.Fatalf("pins of the compiler: %q, %q", pins, m)
	}
	return strings.Join(append(pins, m[1]+" --hash=sha256:"+m[2]), "\n") + "\n"
}

// compile returns the scheduled program of a folder's step.
func (c compiler) compile(t *testing.T, folder, topology string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.program, c.plugin, "testdata/h100.txt", topology, filepath.Join(folder, "step.mlir"), filepath.Join(folder, "options"))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(c.cuda, "bin")+":"+os.Getenv("PATH"), "XLA_FLAGS=--xla_gpu_cuda_data_dir="+c.cuda+" --xla_dump_hlo_as_text --xla_dump_to="+folder)
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*gpu_after_optimizations.txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("scheduled programs: %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
