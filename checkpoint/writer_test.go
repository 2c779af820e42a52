package checkpoint_test

import (
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/checkpoint/folder"
	"gonbatch/tests/tmpfs"
)

func TestWriter(t *testing.T) {
	dir := open(t, checkpoint.Options{Keep: math.MaxInt})
	w := checkpoint.NewWriter(dir)
	if w.Busy() {
		t.Error("busy before the first save")
	}
	store := allTypes(t)
	for step := range int64(3) {
		s := take(t, store)
		s.Step = step
		ok(t, w.Save(s))
	}
	ok(t, w.Wait(), w.Wait())
	steps(t, dir, 2, 1, 0)
	ok(t, w.Close(), w.Close())
	contains(t, w.Save(take(t, store)), "the writer is closed")
}

// TestWriterTellsErrorsLater checks that the next call returns the error of a failed save, once,
// and that later snapshots are still written.
func TestWriterTellsErrorsLater(t *testing.T) {
	dir := open(t, checkpoint.Options{})
	w := checkpoint.NewWriter(dir)
	inTheWay := filepath.Join(dir.Path(), "step-00000001")
	ok(t, os.Mkdir(inTheWay, 0o777))
	save := func(step int64) error {
		s := take(t, allTypes(t))
		s.Step = step
		return w.Save(s)
	}
	ok(t, save(1))
	contains(t, save(2), "step-00000001 already exists")
	ok(t, w.Wait())
	ok(t, os.Remove(inTheWay))
	if s := latest(t, dir); s.Step != 2 {
		t.Errorf("step %d is the newest", s.Step)
	}
	ok(t, os.Mkdir(inTheWay, 0o777), save(1))
	contains(t, w.Close(), "already exists")
	ok(t, w.Close())
}

// TestWriterReleases waits for the save under way, and leaves its error to the next call.
func TestWriterReleases(t *testing.T) {
	dir := open(t, checkpoint.Options{})
	w := checkpoint.NewWriter(dir)
	w.Release()
	ok(t, w.Save(take(t, allTypes(t))))
	w.Release()
	if w.Busy() {
		t.Error("busy after its release")
	}
	ok(t, w.Wait(), os.Mkdir(filepath.Join(dir.Path(), "step-00000007"), 0o777))
	s := take(t, allTypes(t))
	s.Step = 7
	ok(t, w.Save(s))
	w.Release()
	w.Release()
	contains(t, w.Wait(), "step-00000007 already exists")
	ok(t, w.Save(take(t, allTypes(t))), w.Close())
	w.Release()
}

// TestWriterIsInTheBackground blocks a save in its report of a folder that can't be removed.
func TestWriterIsInTheBackground(t *testing.T) {
	reported := make(chan struct{})
	release := make(chan struct{})
	var once sync.Once
	dir := openAt(t, t.TempDir(), checkpoint.Options{Keep: 1, Report: func(string) {
		once.Do(func() { close(reported) })
		<-release
	}})
	s := take(t, allTypes(t))
	s.Step = 1
	ok(t, dir.Save(s))
	stuck := filepath.Join(dir.Path(), ".removing-step-00000001")
	tmpfs.Mount(t, stuck, "size=1m")
	w := checkpoint.NewWriter(dir)
	s = take(t, allTypes(t))
	s.Step = 2
	ok(t, w.Save(s))
	<-reported
	if !w.Busy() {
		t.Error("not busy while a save goes on")
	}
	third := take(t, allTypes(t))
	third.Step = 3
	second := make(chan error)
	go func() { second <- w.Save(third) }()
	select {
	case err := <-second:
		t.Errorf("two saves at once: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	ok(t, <-second, w.Close())
}

// TestWriterTakesAgain checks that memory is reused, and that each checkpoint still has the values
// of its own moment.
func TestWriterTakesAgain(t *testing.T) {
	dir := open(t, checkpoint.Options{Keep: math.MaxInt})
	w := checkpoint.NewWriter(dir)
	store := allTypes(t)
	counter := store.VariableWithValue("/global_step", int64(0)).SetTrainable(false)
	var memory []*tensors.Tensor
	for step := range int64(4) {
		ok(t, counter.SetValue(tensors.FromScalar(step)))
		if step == 3 { // Another shape can't reuse it.
			ok(t, store.GetVariable("/f32").SetValue(tensors.FromValue([]float32{9})))
		}
		s, err := w.Take(store, nil)
		ok(t, err)
		sameTensors(t, take(t, store), s)
		memory = append(memory, s.Tensors["/u64"])
		ok(t, w.Save(s), w.Wait())
	}
	ok(t, w.Close())
	if memory[0] != memory[1] || memory[2] != memory[3] {
		t.Error("no memory is used again")
	}
	for step := range int64(4) {
		s, err := checkpoint.Read(filepath.Join(dir.Path(), folder.Name(step)))
		ok(t, err)
		if got := tensors.ToScalar[int64](s.Tensors["/global_step"]); got != step || s.Step != step {
			t.Errorf("step %d has the values of step %d", step, got)
		}
	}
}

// TestWriterTakesDuringWrite checks that a snapshot that is still being written keeps its memory,
// though another one is taken meanwhile and the training's values have changed.
func TestWriterTakesDuringWrite(t *testing.T) {
	writing, taken := make(chan struct{}, 2), make(chan struct{})
	wait := func(*checkpoint.Snapshot) error { writing <- struct{}{}; <-taken; return nil }
	dir := open(t, checkpoint.Options{Keep: math.MaxInt, Check: wait})
	w := checkpoint.NewWriter(dir)
	store := allTypes(t)
	counter := store.VariableWithValue("/global_step", int64(1)).SetTrainable(false)
	first, err := w.Take(store, nil)
	ok(t, err)
	ok(t, w.Save(first))
	<-writing
	ok(t, counter.SetValue(tensors.FromScalar(int64(2))), store.GetVariable("/f32").SetValue(tensors.FromValue([]float32{9, 8, 7})))
	second, err := w.Take(store, nil)
	ok(t, err)
	close(taken)
	ok(t, w.Save(second), w.Close())
	for step := range int64(2) {
		s, err := checkpoint.Read(filepath.Join(dir.Path(), folder.Name(step+1)))
		ok(t, err)
		if got := tensors.ToScalar[int64](s.Tensors["/global_step"]); got != step+1 {
			t.Errorf("step %d has the values of step %d", step+1, got)
		}
	}
}
