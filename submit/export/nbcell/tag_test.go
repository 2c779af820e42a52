package nbcell

import "testing"

// TestMeant: tags that are probably misspelled, and names that aren't.
func TestMeant(t *testing.T) {
	for tag, want := range map[string]string{
		"notebook_only": "notebook-only", "rank0": "rank-0", "skip_execution": "skip-execution", "raise-exception": "raises-exception", "Parameters": "parameters", "onetask": "one-task",
		"notebook-only": "", "remove_cell": "", "train": "", "evaluate": "", "active-ipynb": "", "remove-input": "",
	} {
		if got := Meant(tag); got != want {
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
	}
}
