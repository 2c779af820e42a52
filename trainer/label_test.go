package trainer

import (
	"testing"
)

// TestLabel: only a program's single training run, without a name of its own, needs none.
func TestLabel(t *testing.T) {
	defer NewProcess()
	made := func(name string) *Trainer {
		return &Trainer{config: Config{Name: names.add(name, "main")}, isNamed: name != ""}
	}
	NewProcess()
	first := made("")
	if got := first.label(); got != "" {
		t.Errorf("the only training run is called %q", got)
	}
	second := made("")
	if a, b := first.label(), second.label(); a != "main: " || b != "main-2: " {
		t.Errorf("two training runs are called %q and %q", a, b)
	}
	NewProcess()
	if got := made("fold-1").label(); got != "fold-1: " {
		t.Errorf("a named training run is called %q", got)
	}
}
