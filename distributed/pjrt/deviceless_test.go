package pjrt_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/aot"
	"gonbatch/distributed/aot/aottest"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/forecast"
)

// TestCompilesForGPUs: XLA's own compiler for CUDA, which needs no GPU, takes the programs of 8 and
// 16 ranks on H100, and has the collectives that it should have, one after the other.
func TestCompilesForGPUs(t *testing.T) {
	if ranktest.InRank() { // A process has one world.
		var topology aot.Topology
		if _, err := fmt.Sscanf(os.Getenv("TOPOLOGY"), "1x%dx%d", &topology.Nodes, &topology.GPUsPerNode); err != nil {
			t.Fatal(err)
		}
		compileStep(t, topology)
		return
	}
	compiler := aottest.Compiler(t)
	for _, topology := range []aot.Topology{{Nodes: 1, GPUsPerNode: 8}, {Nodes: 2, GPUsPerNode: 8}} {
		t.Run(topology.String(), func(t *testing.T) {
			folder := t.TempDir()
			env := []string{"COMPILER=" + compiler, "TOPOLOGY=" + topology.String(), "XLA_FLAGS=--xla_dump_hlo_as_text --xla_dump_to=" + folder}
			if out, err := ranktest.Start(t, ranktest.Torchrun, 1, env); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			checkSchedule(t, scheduled(t, folder), topology.Nodes*topology.GPUsPerNode)
		})
	}
}

// TestGroupsCompileForGPUs: XLA's compiler for CUDA takes collectives of every kind over groups,
// and runs them one after the other.
func TestGroupsCompileForGPUs(t *testing.T) {
	if ranktest.InRank() {
		compileFor(t, aot.Topology{Nodes: 1, GPUsPerNode: 8}, everyCollective, shapes.Make(dtypes.Float32, 32, 5))
		return
	}
	folder := t.TempDir()
	env := []string{"COMPILER=" + aottest.Compiler(t), "XLA_FLAGS=--xla_dump_hlo_as_text --xla_dump_to=" + folder}
	if out, err := ranktest.Start(t, ranktest.Torchrun, 1, env); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := scheduled(t, folder)
	for _, want := range [][2]string{
		{"all-reduce", "{{0,1},{2,3},{4,5},{6,7}}"}, {"all-reduce", "{{0,1,2,3,4,5,6,7}}"}, {"collective-broadcast", "{{2,0,4,6},{3,1,5,7}}"},
		{"all-gather", "{{0,2,4,6},{1,3,5,7}}"}, {"reduce-scatter", "{{0,2,4,6},{1,3,5,7}}"}, {"all-to-all", "{{0,1},{2,3},{4,5},{6,7}}"},
	} {
		pattern := ` ` + want[0] + `\(.*replica_groups=` + regexp.QuoteMeta(want[1]) + `,`
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("the program has no %s over %s:\n%s", want[0], want[1], text)
		}
	}
	checkOneAtATime(t, text)
}

// everyCollective builds collectives of every kind, of the types that they can have.
func everyCollective(x *graph.Node) []*graph.Node {
	pairs, fours := pjrt.Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, pjrt.Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}
	half, bytes := graph.ConvertDType(x, dtypes.BFloat16), graph.ConvertDType(graph.GreaterThan(x, graph.ZerosLike(x)), dtypes.Uint8)
	return []*graph.Node{
		pjrt.Collective{Reduction: pjrt.Min, Groups: pairs}.AllReduce(x),
		pjrt.Collective{Reduction: pjrt.Max}.AllReduce(bytes),
		pjrt.Collective{Groups: fours}.Broadcast(half, 1),
		pjrt.Collective{Groups: fours}.AllGather(bytes),
		pjrt.Collective{Reduction: pjrt.Max, Groups: fours}.ReduceScatter(graph.ConvertDType(x, dtypes.Int64)),
		pjrt.Collective{Groups: pairs}.AllToAll(half),
	}
}

// compileStep compiles a training step with gradients of two types for GPUs that are not there.
func compileStep(t *testing.T, topology aot.Topology) {
	step := func(x, w, v *graph.Node) []*graph.Node {
		hidden := graph.Tanh(graph.MatMul(x, w))
		out := graph.MatMul(graph.ConvertDType(hidden, dtypes.Float64), v)
		gradients := graph.Gradient(graph.ReduceAllSum(graph.Square(out)), w, v)
		return []*graph.Node{graph.Sub(w, pjrt.AllReduceMean(gradients[0])), graph.Sub(v, pjrt.AllReduceMean(gradients[1])), pjrt.AllReduceSum(graph.ReduceAllSum(out)),
			pjrt.AllGather(graph.Sub(part(w), pjrt.ReduceScatterMean(gradients[0])))}
	}
	compileFor(t, topology, step, shapes.Make(dtypes.Float32, 64, 256), shapes.Make(dtypes.Float32, 256, 256), shapes.Make(dtypes.Float64, 256, 10))
}

// compileFor compiles a program for GPUs that are not there.
func compileFor[F graph.ExecGraphFn](t *testing.T, topology aot.Topology, program F, inputs ...shapes.Shape) {
	t.Helper()
	h100, err := forecast.Find("h100")
	if err != nil {
		t.Fatal(err)
	}
	topology.Config = h100.Config()
	compiler, err := aot.Open(os.Getenv("COMPILER"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	steps := 0
	err = pjrt.Pretend("cpu", pjrt.Pretence{Ranks: topology.Nodes * topology.GPUsPerNode, Take: func(step pjrt.Step) error {
		steps++
		_, err := compiler.Compile(topology, step)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	exec := graph.MustNewExec(newBackend(t, "cpu", xlapjrt.NamedValuesMap{"cpu_device_count": int64(1)}), program)
	_, err = exec.Compile(inputs...)
	if steps != 1 || err == nil || !strings.Contains(err.Error(), "only pretends to have other ranks") {
		t.Errorf("%d steps, %v", steps, err)
	}
}

// part returns what a rank could have of the rows of x.
func part(x *graph.Node) *graph.Node {
	return graph.Slice(x, graph.AxisRange(0, x.Shape().Dimensions[0]/pjrt.Ranks()))
}

// scheduled is the program for GPUs that XLA has left in a folder.
func scheduled(t *testing.T, folder string) string {
	t.Helper()
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

// The collectives of a program, and, where they run during the computation, their beginnings and
// ends in the schedule.
var (
	inSchedule = regexp.MustCompile(`(?m)^ +(?:ROOT )?%\S+ = \S+ (all-reduce|all-gather|reduce-scatter)\(.*replica_groups=(\S+),`)
	asyncPart  = regexp.MustCompile(`(?m)^ +(?:ROOT )?%(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-broadcast)-(start|done)\S* = `)
)

// checkSchedule: as many collectives as the program has, over all ranks, one after the other.
func checkSchedule(t *testing.T, scheduled string, ranks int) {
	t.Helper()
	var group []string
	for rank := range ranks {
		group = append(group, fmt.Sprint(rank))
	}
	count := map[string]int{}
	for _, m := range inSchedule.FindAllStringSubmatch(scheduled, -1) {
		count[m[1]]++
		if want := "{{" + strings.Join(group, ",") + "}}"; m[2] != want {
			t.Errorf("an %s over %s, want %s", m[1], m[2], want)
		}
	}
	if want := map[string]int{"all-reduce": 3, "all-gather": 1, "reduce-scatter": 1}; !maps.Equal(count, want) || !strings.Contains(scheduled, "is_scheduled=true") {
		t.Errorf("the collectives %v, want %v in a scheduled program:\n%s", count, want, scheduled)
	}
	checkOneAtATime(t, scheduled)
}

// checkOneAtATime: a collective begins when the one before it has ended.
func checkOneAtATime(t *testing.T, scheduled string) {
	t.Helper()
	running := 0
	for _, m := range asyncPart.FindAllStringSubmatch(scheduled, -1) {
		if m[1] == "done" {
			running--
		} else if running++; running > 1 {
			t.Errorf("collectives overlap, so XLA may order them as it likes:\n%s", scheduled)
		}
	}
}
