package kernel

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestTailLog(t *testing.T) {
	var log tailLog
	for i := range 10_000 {
		if _, err := fmt.Fprintf(&log, "line %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	var shown bytes.Buffer
	log.showIn(&shown)
	if got := shown.String(); len(got) != tailSize || !strings.HasSuffix(got, "line 9998\nline 9999\n") || strings.Contains(got, "line 1000\n") {
		t.Errorf("%d bytes: ...%q", len(got), got[max(0, len(got)-40):])
	}
}
