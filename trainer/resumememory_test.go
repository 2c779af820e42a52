package trainer_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"golang.org/x/sys/unix"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// TestResumeMemory: a training run that resumes needs no more memory than one that begins, so it
// fits where that did.
func TestResumeMemory(t *testing.T) {
	tier.Long(t)
	if ranktest.InRank() {
		printPeak(t)
		return
	}
	for _, ranks := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			folder := t.TempDir()
			peak := func(steps int) (megabytes int) {
				out, err := ranktest.Start(t, ranktest.Torchrun, ranks, []string{"GONBATCH_DEVICES=1", "FOLDER=" + folder, fmt.Sprint("STEPS=", steps)})
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				for _, text := range peaks.FindAllStringSubmatch(out, -1) {
					var one int
					if _, err := fmt.Sscan(text[1], &one); err != nil {
						t.Fatal(err)
					}
					megabytes = max(megabytes, one)
				}
				return megabytes
			}
			begun := peak(2)
			resumed := peak(4)
			const state = 3 * 4 * layersOfState * stateWidth * stateWidth >> 20 // Weights and moments.
			t.Logf("%d MB begun, %d MB resumed; the weights and the optimizer's state have %d MB", begun, resumed, state)
			if begun < state || resumed > begun+state/4 {
				t.Errorf("a training run that resumes takes %d MB, one that begins %d MB; the weights and the optimizer's state have %d MB", resumed, begun, state)
			}
		})
	}
}

// peaks matches what printPeak prints.
var peaks = regexp.MustCompile(`peak (\d+) MB`)

// The network of TestResumeMemory.
const layersOfState, stateWidth = 4, 2048

// printPeak trains and prints the most memory that the process has used.
func printPeak(t *testing.T) {
	deep := func(scope *model.Scope, x *graph.Node) *graph.Node {
		x = layers.Dense(scope.In("first"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, stateWidth)
		for i := range layersOfState {
			x = layers.Dense(scope.In("hidden%d", i), graph.Tanh(x), true, stateWidth)
		}
		return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
	}
	var steps int
	if _, err := fmt.Sscan(os.Getenv("STEPS"), &steps); err != nil {
		t.Fatal(err)
	}
	c := trainer.Config{MaxSteps: steps, BatchSize: 4, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: os.Getenv("FOLDER"), EverySteps: 2}}
	tr, _ := newTrainer(t, c, blobTask(deep))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	if tr.Step() != int64(steps) {
		t.Fatalf("%d updates, want %d", tr.Step(), steps)
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("peak %d MB\n", usage.Maxrss>>10)
}
