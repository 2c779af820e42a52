package report_test

import (
	"fmt"
	"strings"
	"testing"

	"gonbatch/submit/report"
)

// TestLineWriter: the parts of a log may end anywhere, even within a character.
func TestLineWriter(t *testing.T) {
	var out strings.Builder
	lines := &report.LineWriter{To: &out, Rank: 3}
	for _, part := range []string{"on", "e\n\nb\xc3", "\xa9\r<c>\xff\n", "rest"} {
		if _, err := fmt.Fprint(lines, part); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := lines.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var want strings.Builder
	for _, line := range []string{"one", "", "bé\\r<c>\ufffd", "rest"} {
		fmt.Fprintf(&want, "{\"version\":1,\"rank\":3,\"line\":\"%s\"}\n", line)
	}
	if out.String() != want.String() {
		t.Errorf("%s, want %s", &out, &want)
	}
}
