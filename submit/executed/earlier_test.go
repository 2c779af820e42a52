package executed

import (
	"testing"

	"gonbatch/internal/nbformat"
)

// TestName: the id of a session's cell is in no notebook that the user has.
func TestName(t *testing.T) {
	for _, tt := range []struct {
		cell nbformat.Cell
		want string
	}{
		{nbformat.Cell{Number: 3, ID: "4f2a"}, "cell 3 (id 4f2a)"},
		{nbformat.Cell{Number: 3}, "cell 3"},
		{nbformat.Cell{Number: 3, ID: "session-3", Alias: "[7]"}, "cell [7]"},
	} {
		if got := name(&tt.cell); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
