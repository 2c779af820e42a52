package solo_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonbatch/internal/solo"
)

// TestAgainstList: of works that begin and end in any order, some of them twice, the first that has
// begun and not ended is reported, and each change moves the time.
func TestAgainstList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type work struct {
		what string
		end  func()
	}
	var model, ended []work
	if first, moved := solo.Now(); first.What != "" || !moved.IsZero() {
		t.Errorf("before the first work: %+v, %v", first, moved)
	}
	for i := range 1000 {
		before := time.Now()
		switch n := len(model); {
		case random.IntN(2) == 0:
			what := string(rune('a' + i%26))
			model = append(model, work{what, solo.Begin(what)})
		case n > 0:
			i := random.IntN(n)
			model[i].end()
			ended, model = append(ended, model[i]), slices.Delete(model, i, i+1)
		default:
			solo.Advance()
		}
		first, moved := solo.Now()
		if len(model) == 0 && first != (solo.Work{}) || len(model) > 0 && first.What != model[0].what {
			t.Fatalf("after %d changes: %+v, want the first of %d works", i+1, first, len(model))
		}
		if moved.Before(before) {
			t.Fatalf("after %d changes: moved at %v, before the last change at %v", i+1, moved, before)
		}
		if len(ended) > 0 {
			ended[random.IntN(len(ended))].end() // It has ended already.
		}
	}
}
