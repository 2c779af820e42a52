package distributed_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

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
