package checkpoint_test

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/google/go-cmp/cmp"

	"gonbatch/checkpoint"
)

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func contains(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v\nwant %q in it", err, text)
		}
	}
}

func as[E error](t *testing.T, err error) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no %T", err, e)
	}
	return e
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func take(t *testing.T, store *model.Store) *checkpoint.Snapshot {
	t.Helper()
	s, err := checkpoint.Take(store, nil)
	ok(t, err)
	return s
}

func open(t *testing.T, o checkpoint.Options) *checkpoint.Dir {
	t.Helper()
	return openAt(t, t.TempDir(), o)
}

func openAt(t *testing.T, path string, o checkpoint.Options) *checkpoint.Dir {
	t.Helper()
	if o.Report == nil {
		o.Report = func(message string) { t.Errorf("reported: %s", message) }
	}
	d, err := checkpoint.Open(path, o)
	ok(t, err)
	return d
}

// latest reads the newest checkpoint. It must not skip any.
func latest(t *testing.T, d *checkpoint.Dir) *checkpoint.Snapshot {
	t.Helper()
	s, err := d.Latest(func(message string) { t.Errorf("reported: %s", message) })
	ok(t, err)
	if s == nil {
		t.Fatalf("no checkpoint in %s", d.Path())
	}
	return s
}

func sameTensors(t *testing.T, want, got *checkpoint.Snapshot) {
	t.Helper()
	same(t, sorted(want.Tensors), sorted(got.Tensors))
	for path, tensor := range want.Tensors {
		other, has := got.Tensors[path]
		if !has {
			continue
		}
		if !tensor.Shape().Equal(other.Shape()) || !slices.Equal(raw(t, tensor), raw(t, other)) {
			t.Errorf("%s is %s, want %s", path, other, tensor)
		}
	}
	same(t, want.Weights, got.Weights)
}

// raw returns a tensor's bytes.
func raw(t *testing.T, tensor *tensors.Tensor) []byte {
	t.Helper()
	if tensor.Shape().IsZeroSize() {
		return nil
	}
	var data []byte
	ok(t, tensor.ConstBytes(func(b []byte) { data = slices.Clone(b) }))
	return data
}

func metrics(s *checkpoint.Snapshot) int {
	n := 0
	for path := range s.Tensors {
		if strings.HasPrefix(path, "/metrics/") {
			n++
		}
	}
	return n
}

// empty checks that a folder is empty, without even hidden files.
func empty(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	ok(t, err)
	for _, entry := range entries {
		t.Errorf("%s is left in %s", entry.Name(), path)
	}
}
