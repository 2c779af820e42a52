package plural_test

import (
	"strings"
	"testing"

	"gonbatch/internal/plural"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		n         int64
		one, want string
	}{
		{0, "rank", "0 ranks"}, {1, "rank", "1 rank"}, {2, "rank", "2 ranks"}, {-1, "node", "-1 nodes"},
		{1, "batch", "1 batch"}, {2, "epoch", "2 epochs"}, {2, "branch", "2 branches"}, {3, "batch", "3 batches"}, {2, "class", "2 classes"}, {2, "entry", "2 entries"},
		{2, "day", "2 days"}, {2, "GPU", "2 GPUs"}, {4, "standard deviation", "4 standard deviations"}, {1e12, "example", "1000000000000 examples"},
	} {
		if got := plural.Of(tt.n, tt.one); got != tt.want {
			t.Errorf("%d of %q: got %q, want %q", tt.n, tt.one, got, tt.want)
		}
	}
}

func TestAnd(t *testing.T) {
	for names, want := range map[string]string{"": "", "a": "a", "a b": "a and b", "a b c": "a, b and c"} {
		if got := plural.And(strings.Fields(names)); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}
