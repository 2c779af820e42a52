package checkpoint_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
)

// storeOf returns a store with a weight for each name.
func storeOf(t *testing.T, names ...string) *model.Store {
	t.Helper()
	store := model.NewStore()
	for i, name := range names {
		_, err := store.CreateVariable(name, tensors.FromValue([]float32{float32(i), 1}))
		ok(t, err)
	}
	return store
}

// TestTakeHasWhatIsPending: if no graph has created a store's variables yet, its next snapshot
// still has them all.
func TestTakeHasWhatIsPending(t *testing.T) {
	want := take(t, storeOf(t, "/dense/weights", "/dense/biases"))
	d := open(t, checkpoint.Options{})
	ok(t, d.Save(want))
	for _, withheld := range [][]string{nil, {"/dense/biases"}} {
		store := model.NewStore()
		ok(t, latest(t, d).Restore(store, withheld...))
		sameTensors(t, want, take(t, store))
	}
}

func TestWithheldVariablesKeepTheirValue(t *testing.T) {
	store := model.NewStore()
	ok(t, take(t, storeOf(t, "/a", "/b")).Restore(store, "/b"))
	v, err := store.CreateVariable("/b", tensors.FromValue([]float32{7, 7}))
	ok(t, err)
	if got := v.MustValue().String(); got != tensors.FromValue([]float32{7, 7}).String() {
		t.Errorf("/b is %s, want what it was created with", got)
	}
}

// TestLesserIsRefused: a snapshot with fewer weights can neither replace a checkpoint nor follow
// it.
func TestLesserIsRefused(t *testing.T) {
	path := t.TempDir()
	whole := take(t, storeOf(t, "/dense/weights", "/dense/biases"))
	whole.Step = 4
	ok(t, openAt(t, path, checkpoint.Options{}).Save(whole))
	for _, step := range []int64{4, 5} {
		d := openAt(t, path, checkpoint.Options{})
		part, none := take(t, storeOf(t, "/dense/weights")), take(t, model.NewStore())
		part.Step, none.Step = step, step
		contains(t, d.Save(part), "refused", "/dense/biases", "step-00000004")
		lesser := as[*checkpoint.LesserError](t, d.Save(part))
		same(t, []string{"/dense/biases"}, lesser.Missing)
		contains(t, d.Save(none), "no weights")
		got := latest(t, d)
		same(t, int64(4), got.Step)
		sameTensors(t, whole, got)
	}
	more := take(t, storeOf(t, "/dense/weights", "/dense/biases", "/new"))
	more.Step = 6
	ok(t, openAt(t, path, checkpoint.Options{}).Save(more))
}

// TestUnsetWeightIsRefused: a weight without a value would be missing in the checkpoint.
func TestUnsetWeightIsRefused(t *testing.T) {
	store := storeOf(t, "/a")
	store.RootScope().In("dense").VariableWithShape("weights", take(t, storeOf(t, "/x")).Tensors["/x"].Shape())
	_, err := checkpoint.Take(store, nil)
	contains(t, err, "/dense/weights", "has no value yet")
}

func TestSetAside(t *testing.T) {
	d := open(t, checkpoint.Options{Keep: 3})
	aside, err := d.SetAside()
	ok(t, err)
	same(t, "", aside)
	for round, want := range []string{"earlier-1", "earlier-2"} {
		for step := range int64(2) {
			s := take(t, storeOf(t, "/a"))
			s.Step = step + int64(round)
			ok(t, d.Save(s))
		}
		aside, err := d.SetAside()
		ok(t, err)
		same(t, filepath.Join(d.Path(), want), aside)
		moved, err := checkpoint.List(aside)
		ok(t, err)
		left, err := checkpoint.List(d.Path())
		ok(t, err)
		same(t, 2, len(moved))
		same(t, 0, len(left))
	}
	other := take(t, storeOf(t, "/another"))
	ok(t, d.Save(other)) // Checkpoints that were set aside don't count.
}
