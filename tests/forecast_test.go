package tests

import (
	"fmt"
	"testing"

	"gonbatch/distributed/aot/aottest"
	"gonbatch/internal/tier"
)

// TestForecast: submit check --target says what a notebook's training step takes on GPUs that are
// not there.
func TestForecast(t *testing.T) {
	t.Parallel()
	aottest.Compiler(t)
	u := newUser(t, "XLA_FLAGS=") // The CUDA plugin aborts on unknown flags.
	out := u.mustSubmit(t, "check", "--target", "h100", "--nodes", "2", "--gpus-per-node", "4", mnist(t), "--", "-batch", "128")
	wantPlaces(t, out,
		`each GPU of 8 x h100 on 2 nodes, in a training step of train with a batch of 128 \(16 a GPU\):`,
		` +memory +[0-9.]+ MiB of the 59\.4 GiB that XLA takes of one NVIDIA H100 80 GB SXM`,
		` +- parameters +1\.6 MiB`,
		` +reduces +1\.6 MiB by 1 collective`,
		` +time +at least .*`,
	)
	// All models of a GAN train in one step, with four batch normalizations.
	type size struct{ nodes, gpus int }
	for _, w := range tier.Fewer([]size{{2, 8}, {1, 1}, {1, 8}}, 1) {
		out := u.mustSubmit(t, "check", "--target", "h100", "--nodes", fmt.Sprint(w.nodes), "--gpus-per-node", fmt.Sprint(w.gpus), example(t, "gan.ipynb"))
		want := []string{fmt.Sprintf(`each GPU of %d x h100 .*`, w.nodes*w.gpus), ` +- parameters +1\.4 MiB`, ` +time +at least .*`}
		if w.nodes*w.gpus > 1 {
			want = append(want, ` +reduces +1\.4 MiB by 17 collectives`)
		}
		wantPlaces(t, out, want...)
	}
	for _, wrong := range [][]string{{"--target", "h1000"}, {"--target", "h100", "--nodes", "0"}, {"--nodes", "2"}} {
		if out, err := u.submit(t, append(append([]string{"check"}, wrong...), mnist(t))...); err == nil {
			t.Errorf("%q succeeded:\n%s", wrong, out)
		}
	}
}
