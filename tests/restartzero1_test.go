package tests

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"

	"gonbatch/internal/rundir"
)

// dividing trains with the strategy zero1. Its weights do not depend on the number of ranks, except
// for rounding.
var dividing = training{
	name: "zero1",
	args: withTrainer.args,
	cells: []string{
		withTrainer.cells[0],
		withTrainer.cells[1],
		`import "gonbatch/models/cnn"

func dividedNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = layers.Dense(scope.In("hidden"), x, true, 7)
	x = graph.Tanh(cnn.BatchNorm(scope.In("norm"), x).Done())
	return layers.Dense(scope.In("logits"), x, true, 4)
}

// values returns the elements of all variables but those of metrics, in the order of their names.
func values(store *model.Store) (all []float64) {
	byName := map[string][]float64{}
	for v := range store.IterVariables() {
		if v.HasValue() && strings.HasPrefix(v.Path(), "/") && v.Trainable {
			byName[v.Path()] = tensors.MustCopyFlatData[float64](v.MustValue())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name]...)
	}
	return all
}`,
		`%%
world, err := distributed.Init()
check(err)
defer world.Close()
task := trainer.Supervised(dividedNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.01).WeightDecay(0.1).Done())
t, err := trainer.New(world, trainer.Config{
	Strategy: "zero1", Precision: "64-true", MaxEpochs: 5, BatchSize: 12, AccumulateGradBatches: 2, GradientClipNorm: 1, Seed: 5, LogEvery: 10, Loggers: []string{"none"},
	Checkpoint: trainer.CheckpointConfig{EverySteps: 5}, Schedule: trainer.ScheduleConfig{Kind: "cosine"},
}, task, trainer.WithCallbacks(holder()))
check(err)
check(t.Fit(context.Background(), blobs{}, blobs{}))
if world.IsMain() {
	text, err := json.Marshal(values(t.Store()))
	check(err)
	check(os.WriteFile(filepath.Join(os.Getenv("GONBATCH_RUN_DIR"), "final"), text, 0o644))
}`,
	},
	final: func(t *testing.T, run rundir.Dir) string {
		t.Helper()
		return read(t, filepath.Join(run.Path(), "final"))
	},
	same: func(got, want string) bool {
		var ours, theirs []float64
		if json.Unmarshal([]byte(got), &ours) != nil || json.Unmarshal([]byte(want), &theirs) != nil || len(ours) != len(theirs) || len(ours) < 400 {
			return false
		}
		furthest := 0.0
		for i, value := range theirs {
			furthest = max(furthest, math.Abs(ours[i]-value))
		}
		return furthest < 1e-9
	},
}
