package checkpoint

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
)

// TestSpare: the memory of the last snapshot is kept for the next one, unless it was released
// meanwhile.
func TestSpare(t *testing.T) {
	var s spare
	first, second := map[string]*tensors.Tensor{"first": nil}, map[string]*tensors.Tensor{"second": nil}
	if s.take() != nil {
		t.Error("there is something before anything was written")
	}
	s.put(first)
	s.put(second)
	if _, ok := s.take()["first"]; !ok {
		t.Error("the first was not kept")
	}
	s.put(first)
	s.drop()
	if s.tensors != nil {
		t.Error("it is still there after its release")
	}
	s.put(second) // It was being written.
	if s.take() != nil {
		t.Error("what was being written is kept after the release")
	}
	s.put(second)
	if _, ok := s.take()["second"]; !ok {
		t.Error("after a further snapshot nothing is kept")
	}
}
