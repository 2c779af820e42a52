package tests

import (
	"testing"

	"gonbatch/distributed/aot/aottest"
)

// TestForecast: submit check --target says what a notebook's training step takes on GPUs that are
// not there.
func TestForecast(t *testing.T) {
	t.Parallel()
	aottest.Compiler(t)
	u := newUser(t, "XLA_FLAGS=") // The CUDA plugin ends at flags that it does not know.
	out := u.mustSubmit(t, "check", "--target", "h100", "--nodes", "2", "--gpus-per-node", "4", mnist(t), "--", "-batch", "128")
	wantPlaces(t, out,
		`each GPU of 8 x h100 on 2 nodes, in a training step of train with a batch of 128 \(16 a GPU\):`,
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
