package local

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestMessages: what the ranks' launchers say arrives, whatever the writer.
func TestMessages(t *testing.T) {
	spec := newSpec(t, 8, [2]string{"one", `true`})
	var out, errOut bytes.Buffer
	err := Runner{Out: &out, Err: &errOut, LookPath: lookOnly(noMPI), Environ: append(os.Environ(), "LC_ALL=none_NONE")}.Run(t.Context(), staged(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(errOut.String(), "setlocale"); n != 8 {
		t.Errorf("%d warnings of 8: %q", n, errOut.String())
	}
}
