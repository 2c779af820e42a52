package magic

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMeasures: a card has up to twelve lines of metrics. What it leaves out is about the speed of
// the training, if that is enough, and it says how much that is.
func TestMeasures(t *testing.T) {
	few := state{Step: 4, Metrics: map[string]float64{"epoch": 1, "val/loss": 0.5, "train/learning_rate": 0.1}}
	if got, want := few.measures(), []string{"step 4", "train/learning_rate 0.1", "val/loss 0.5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	gan := state{Step: 40, Metrics: map[string]float64{"epoch": 1}}
	for _, name := range strings.Fields(`test/accuracy test/loss train/data_wait train/discriminator_learning_rate train/discriminator_loss
		train/examples_per_second train/generator_learning_rate train/generator_loss train/learning_rate train/loss
		val/discriminator_loss val/generator_loss val/loss`) {
		gan.Metrics[name] = 1
	}
	want := "step 40, test/accuracy 1, test/loss 1, train/data_wait 1, train/discriminator_learning_rate 1, train/discriminator_loss 1, train/generator_loss 1, " +
		"train/loss 1, val/discriminator_loss 1, val/generator_loss 1, val/loss 1, and 3 more"
	if got := strings.Join(gan.measures(), ", "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n := range 30 {
		s := state{Metrics: map[string]float64{}}
		for i := range n {
			s.Metrics[fmt.Sprint("m", i)] = 1
		}
		got := s.measures()
		if len(got) != min(n, mostMeasures) || n > mostMeasures && got[mostMeasures-1] != fmt.Sprintf("and %d more", n-mostMeasures+1) {
			t.Errorf("%d metrics: %q", n, got)
		}
	}
}
