package distributed_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
)

// TestModelsAreForgotten: the World doesn't keep a model that the program no longer uses.
func TestModelsAreForgotten(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 2, func(t *testing.T) {
		w := initWorld(t)
		train := func() weak.Pointer[model.Store] {
			store := model.NewStore()
			if err := fit(w, store, smallNet, w.Optimizer(optimizer.Adam().Done())); err != nil {
				t.Fatal(err)
			}
			return weak.Make(store)
		}
		first := train()
		if err := fit(w, model.NewStore(), smallNet, w.Optimizer(optimizer.Adam().Done())); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); first.Value() != nil; time.Sleep(10 * time.Millisecond) {
			runtime.GC()
			if time.Now().After(deadline) {
				t.Fatal("the first model is still in memory")
			}
		}
	})
}

// TestRanksHaveOwnRandomNumbers: of a million ranks, over several training runs, no two have the
// same key, so no two have a random number in common but by chance. Rank 0 has its own too.
func TestRanksHaveOwnRandomNumbers(t *testing.T) {
	keys := map[uint64]bool{}
	const runs, ranks = 10, 100_000
	for run := range uint64(runs) {
		ofMain := append(binary.LittleEndian.AppendUint64(nil, run), make([]byte, 16)...)
		keys[run] = true
		for rank := 1; rank < ranks; rank++ {
			keys[distributed.RandomState(ofMain, rank)[0]] = true
		}
	}
	if len(keys) != runs*ranks {
		t.Errorf("%d different keys of %d ranks", len(keys), runs*ranks)
	}
}
