package tests

import (
	"os"
	"testing"

	"gonbatch/internal/plugin"
)

// TestForecast checks that submit check --target predicts the memory and time of a notebook's
// training step on GPUs that this machine does not have.
func TestForecast(t *testing.T) {
	t.Parallel()
	if _, err := plugin.EnsureCompiler(t.Context(), plugin.Options{Progress: os.Stderr}); err != nil {
		t.Skipf("XLA's compiler for GPUs (257 MB) is not available: %v", err)
	}
	u := newUser(t, "XLA_FLAGS=") // The CUDA plugin aborts on flags that it does not know.
	out := u.mustSubmit(t, "check", "--target", "h100", "--nodes", "2", "--gpus-per-node", "4", mnist(t))
	wantPlaces(t, out,
		`each GPU of 8 x h100 on 2 nodes, in a training step of train with a batch of 64 \(8 a GPU\):`,
		` +memory +[0-9.]+ MiB of the 59\.4 GiB that XLA takes of one NVIDIA H100 80 GB SXM`,
		` +- parameters +1\.6 MiB`,
		` +reduces +1\.6 MiB by 1 collective`,
		` +time +at least .*`,
	)
	for _, wrong := range [][]string{{"--target", "h1000"}, {"--target", "h100", "--nodes", "0"}, {"--nodes", "2"}} {
		if out, err := u.submit(t, append(append([]string{"check"}, wrong...), mnist(t))...); err == nil {
			t.Errorf("%q succeeded:\n%s", wrong, out)
		}
	}
}
