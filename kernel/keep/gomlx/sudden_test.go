package gomlx

import (
	"bytes"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/kernel/keep"
)

// trainingWriter takes a step of a training run before each write.
type trainingWriter struct {
	bytes.Buffer
	step func()
}

func (w *trainingWriter) Write(text []byte) (int, error) {
	w.step()
	return w.Buffer.Write(text)
}

// TestSudden: if a program ends while another goroutine trains, the model is saved as it was at one
// moment.
func TestSudden(t *testing.T) {
	keep.SaveNow()
	t.Cleanup(func() { keep.Vars{}.Load(nil) })
	store := model.NewStore()
	v, err := store.CreateVariable("/dense/weights", tensors.FromValue([]float32{1, 2, 3}))
	if err != nil {
		t.Fatal(err)
	}
	w := &trainingWriter{step: func() {
		if err := v.SetValue(tensors.FromValue([]float32{4, 5, 6})); err != nil {
			t.Error(err)
		}
	}}
	if err := saveStore(w, store); err != nil {
		t.Fatal(err)
	}
	saved, err := loadStore(w, int64(w.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if value := saved.GetVariable("/dense/weights").MustValue(); !value.Equal(tensors.FromValue([]float32{1, 2, 3})) {
		t.Errorf("saved %v", value)
	}
}
