package trainer_test

import (
	"bytes"
	"fmt"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// TestGradientCompression: gradients that travel as bfloat16 train almost as whole ones do, and all
// ranks have the same weights.
func TestGradientCompression(t *testing.T) {
	if !ranktest.InRank() {
		for _, launcher := range tier.Fewer([]ranktest.Launcher{ranktest.Torchrun.OnGPUs(t, 2), ranktest.OpenMPI, ranktest.Torchrun}, 1) {
			ranktest.RunWith(t, []ranktest.Launcher{launcher.With("", "GONBATCH_DEVICES=1")}, 2, nil)
		}
		ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun.With(" of three", "GONBATCH_DEVICES=1")}, 3, nil)
		return
	}
	ranktest.RunWith(t, nil, 0, func(t *testing.T) {
		for _, strategy := range []string{"ddp", "zero1"} {
			fit := func(compression string) []float64 {
				d := dividedCases()[0]
				d.config = trainer.Config{GradientCompression: compression, GradientClipNorm: 0.5, AccumulateGradBatches: 2}
				return d.fit(t, strategy).End
			}
			want, got := fit("none"), fit("bf16")
			length := distance(want, make([]float64, len(want)))
			if off := distance(got, want) / length; !(off > 1e-5 && off < 0.02) {
				t.Errorf("%s: the weights are off by %g of their norm", strategy, off)
			}
			all, err := world(t).AllGather([]byte(fmt.Sprint(got)))
			if err != nil {
				t.Fatal(err)
			}
			for rank, weights := range all {
				if !bytes.Equal(weights, all[0]) {
					t.Errorf("%s: rank %d has other weights than rank 0", strategy, rank)
				}
			}
		}
	})
}
