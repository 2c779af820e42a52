package distributed_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
)

// TestGatherOnMain: rank 0 gets what each rank has, of any length. If it can't use some of it, all
// ranks fail, and can still communicate.
func TestGatherOnMain(t *testing.T) {
	launchers := []ranktest.Launcher{ranktest.Torchrun, ranktest.OpenMPI}
	ranktest.RunWith(t, launchers, 4, func(t *testing.T) {
		w := initWorld(t)
		for round, lengths := range [][]int{{0, 0, 0, 0}, {3, 0, 200_000, 1}, {0, 5, 0, 0}, {9, 8, 7, 6}} {
			of := func(rank int) []byte { return bytes.Repeat([]byte{byte(10*round + rank)}, lengths[rank]) }
			var got []int
			err := w.GatherOnMain(of(w.Rank()), func(rank int, data []byte) error {
				got = append(got, rank)
				if !bytes.Equal(data, of(rank)) {
					t.Errorf("round %d: %d bytes of rank %d: they differ", round, len(data), rank)
				}
				if round == 3 && rank == 2 {
					return errors.New("no room")
				}
				return nil
			})
			want := map[bool][]int{true: {0, 1, 2, 3}}[w.IsMain()]
			fails := ""
			if round == 3 {
				fails, want = "rank 0 failed", want[:min(3, len(want))]
				if w.IsMain() {
					fails = "no room"
				}
			}
			if (err != nil) != (fails != "") || !strings.Contains(fmt.Sprint(err), fails) || !slices.Equal(got, want) {
				t.Errorf("round %d: got data of %v, %v; want %v and %q", round, got, err, want, fails)
			}
		}
		if sum := []float64{1}; w.AllReduceSum(sum) != nil || sum[0] != 4 {
			t.Errorf("afterwards, the sum is %v", sum)
		}
	})
}
