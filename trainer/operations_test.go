package trainer_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// pictures is a dataset of noise, [n, 16, 16, 3], in ten classes.
type pictures int

func (p pictures) Name() string { return "pictures" }
func (p pictures) Len() int     { return int(p) }

func (p pictures) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	var images []float32
	var classes []int32
	for _, index := range indices {
		r := rand.New(rand.NewPCG(1, uint64(index)))
		for range 16 * 16 * 3 {
			images = append(images, r.Float32())
		}
		classes = append(classes, int32(r.IntN(10)))
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, len(indices), 16, 16, 3)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(classes, len(indices), 1)}, nil
}

// pictureNet has convolutions, a product and random numbers that are computed outside XLA.
func pictureNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = activation.Relu(layers.Convolution(scope.In("first"), x).Channels(16).KernelSize(3).PadSame().Done())
	x = activation.Relu(layers.Convolution(scope.In("second"), x).Channels(16).KernelSize(3).Strides(2).PadSame().Done())
	x = activation.Relu(layers.Dense(scope.In("hidden"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 512))
	x = layers.DropoutStatic(scope.In("dropout"), x, 0.2)
	return layers.Dense(scope.In("logits"), x, true, 10)
}

// each is how often an operation is in a step.
type each map[string]int

// computed are the operations that pictureNet's step computes outside XLA.
var computed = each{
	"random bits": 1, "convolution 16x16x16x3 -> 16x16x16x16, 3x3": 1, "convolution 16x16x16x16 -> 16x8x8x16, 3x3, stride 2": 1,
	"Adam's update of 524288 weights": 1, "gradient of weights": 2, "gradient of images": 1, "product 16x1024 by 1024x512": 1, "product 16x512 by 512x1024": 1, "product 1024x16 by 16x512": 1,
}

// TestOperations: the trace of each step has what oneDNN computes, and the collectives, whether or
// not they travel while the program computes.
func TestOperations(t *testing.T) {
	if ranktest.InRank() {
		testOperations(t)
		return
	}
	dnn, on, off := rundir.EnvOneDNN+"="+ranktest.OneDNN(t), rundir.EnvOverlap+"=on", rundir.EnvOverlap+"=off"
	one := ranktest.Torchrun.With(", one rank", dnn)
	ranktest.RunWith(t, []ranktest.Launcher{one}, 1, nil)
	ranktest.RunWith(t, tier.Half([]ranktest.Launcher{
		ranktest.OpenMPI.With(", whole", dnn, off), ranktest.Torchrun.With(", whole", dnn, off),
		ranktest.MPICH.With(", travelling", dnn, on), ranktest.Torchrun.With(", travelling", dnn, on),
	}), 2, nil)
}

func testOperations(t *testing.T) {
	w := world(t)
	c := trainer.Config{MaxSteps: 6, BatchSize: 16 * w.Size(), Seed: 1, Profile: trainer.ProfileConfig{Steps: "3-5", Dir: t.TempDir()}}
	tr, out := newTrainer(t, c, blobTask(pictureNet))
	if err := tr.Fit(t.Context(), pictures(320), nil); err != nil {
		t.Fatal(err)
	}
	if all, lost := w.RecordedOperations(); len(all)+lost > 0 {
		t.Errorf("after the recording, %d operations are recorded", len(all)+lost)
	}
	if !w.IsMain() {
		return
	}
	collectives := map[bool]each{false: {"all-reduce": 2}, true: {"all-reduce": 2, "start all-reduce": 2, "wait for all-reduce": 2}}[os.Getenv(rundir.EnvOverlap) == "on"]
	if w.Size() == 1 {
		collectives = nil
	}
	file := readTrace(t, filepath.Join(c.Profile.Dir, "main-steps-3-5.json"))
	for rank := range w.Size() {
		file.checkOperations(t, rank, []int{3, 4, 5}, collectives)
	}
	want := `; within the steps: .*(products|convolutions) \d+%`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// checkOperations checks that each of the steps, and no other, has these operations and those that
// it computes, within the time of the step.
func (f traceFile) checkOperations(t *testing.T, rank int, steps []int, collectives each) {
	t.Helper()
	got, row, times := map[int]each{}, f.rows(rank), map[int][2]float64{}
	for _, e := range f.spans(rank, row["training"]) {
		if e.Name == "step" {
			times[e.Args.Step] = [2]float64{e.Ts, e.Ts + e.Dur}
		}
	}
	for name, tid := range row {
		if name == "training" || strings.HasPrefix(name, "loading") {
			continue
		}
		until := 0.0
		for _, e := range f.spans(rank, tid) {
			step := times[e.Args.Step]
			if e.Ts < step[0] || e.Ts+e.Dur > step[1]+1e-3 || e.Ts < until-1e-3 || e.Args.Waited*1e3 > e.Dur+1e-3 || e.Args.Thread == 0 {
				t.Errorf("rank %d, %s: %+v isn't after %g and within its step, %v", rank, name, e, until, step)
			}
			until = e.Ts + e.Dur
			if got[e.Args.Step] == nil {
				got[e.Args.Step] = each{}
			}
			got[e.Args.Step][kindOf(e.Name)]++
		}
	}
	want := map[int]each{}
	for _, step := range steps {
		want[step] = each{}
		maps.Copy(want[step], computed)
		maps.Copy(want[step], collectives)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("rank %d: %v, want %v", rank, got, want)
	}
}

// kindOf shortens the name of an operation of which a step has several.
func kindOf(name string) string {
	for _, kind := range []string{"random bits", "gradient of weights", "gradient of images", "all-reduce", "start all-reduce", "wait for all-reduce"} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	return name
}

// TestOperationsOfFailed: a recording ends with a training that fails.
func TestOperationsOfFailed(t *testing.T) {
	c := trainer.Config{MaxSteps: 6, BatchSize: 12, Profile: trainer.ProfileConfig{Steps: "2-100", Dir: t.TempDir()}}
	tr, _ := newTrainer(t, c, blobTask(smallNet), killAt(4))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if all, lost := tr.World().RecordedOperations(); len(all)+lost > 0 {
		t.Errorf("%d operations are recorded after the failure", len(all)+lost)
	}
	tr, out := newTrainer(t, c, blobTask(smallNet))
	mustFit(t, tr)
	if !strings.Contains(out.String(), "within the steps: ") {
		t.Errorf("no random bits in\n%s", out)
	}
}
