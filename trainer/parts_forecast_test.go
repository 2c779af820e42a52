package trainer_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/aot/aottest"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/forecast"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// askForecast runs this test in a rank that forecasts its training run for 8 H100.
func askForecast(t *testing.T, env ...string) forecast.Answer {
	t.Helper()
	answer, out := askForecastFor(t, forecast.World{Target: "h100", Nodes: 2, GPUsPerNode: 4}, env...)
	if answer == nil || answer.Error != "" {
		t.Fatalf("the answer is %+v\n%s", answer, out)
	}
	return *answer
}

// askForecastFor is like askForecast, for any world. The answer is nil if the program ends without
// one, and out is what it prints.
func askForecastFor(t *testing.T, world forecast.World, env ...string) (answer *forecast.Answer, out string) {
	t.Helper()
	aottest.Compiler(t)
	path := filepath.Join(t.TempDir(), "question.json")
	q := forecast.Question{World: world}
	if err := rundir.WriteJSON(path, q); err != nil {
		t.Fatal(err)
	}
	env = append(env, rundir.EnvForecast+"="+path, rundir.EnvPlatform+"=cpu", "XLA_FLAGS=--xla_dump_to="+t.TempDir())
	out, err := ranktest.Start(t, ranktest.Torchrun, 1, env)
	if err != nil {
		return nil, out
	}
	if err := rundir.ReadJSON(path, &q); err != nil {
		t.Fatal(err)
	}
	return q.Answer, out
}

// TestZero1Forecast: for H100 too, XLA's compiler scatters the gradients and gathers the weights of
// a step, and each GPU has its part of the optimizer's state.
func TestZero1Forecast(t *testing.T) {
	tier.Long(t)
	if ranktest.InRank() {
		c := trainer.Config{Strategy: os.Getenv(strategy), MaxSteps: 2, BatchSize: 16, GradientClipNorm: 1, Loggers: []string{"none"}}
		tr, _ := newTrainer(t, c, oddTask(optimizer.Adam().Done()))
		t.Fatalf("the training was not ended: %v", tr.Fit(t.Context(), ranktest.Blobs(145), nil))
	}
	ask := func(with string) forecast.Answer { return askForecast(t, strategy+"="+with) }
	kinds := func(a forecast.Answer) map[string]int {
		all := map[string]int{}
		for _, op := range a.Collectives {
			all[strings.TrimSuffix(op, "-start")]++
		}
		return all
	}
	whole, part := ask("ddp"), ask("zero1")
	t.Logf("%v, %v; optimizer: %d and %d bytes; reduced: %d and %d", kinds(whole), kinds(part), whole.Memory.Optimizer, part.Memory.Optimizer, whole.Reduced, part.Reduced)
	// Batch normalization has three all-reduces. The strategies reduce its averages, which are no
	// weights, and the norm of the gradients, if these are in parts.
	if got, want := kinds(whole), map[string]int{"all-reduce": 4}; !maps.Equal(got, want) {
		t.Errorf("ddp has %v, want %v", got, want)
	}
	if got, want := kinds(part), map[string]int{"all-reduce": 5, "reduce-scatter": 1, "all-gather": 1}; !maps.Equal(got, want) {
		t.Errorf("zero1 has %v, want %v", got, want)
	}
	if most := whole.Memory.Optimizer/8 + 200; part.Memory.Optimizer > most || part.Memory.Parameters != whole.Memory.Parameters {
		t.Errorf("memory: %+v with ddp, %+v with zero1", whole.Memory, part.Memory)
	}
	if off := part.Reduced - whole.Reduced; off < -200 || off > 200 {
		t.Errorf("zero1 reduces %d bytes, ddp %d", part.Reduced, whole.Reduced)
	}
}
