package kernel

import (
	"bytes"
	"errors"
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

// TestLastWords: the reason is the last one in the log, with the error before GoNB's.
func TestLastWords(t *testing.T) {
	for text, want := range map[string]string{
		"panic: old\nI1129 10:00:00 1 a.go:1] x\npanic: new\n\ngoroutine 1\n":                              "panic: new (exit status 2)",
		"panic: user\nF1129 10:00:00.1 1 main.go:2] the reason\n":                                          "the reason (exit status 2)",
		"E1129 10:00:00.1 1 a.go:1] go failed:\nFor more\n\nsee go\nF1129 10:00:00.1 1 main.go:2] ended\n": "go failed:\nFor more\n\nsee go\nended (exit status 2)",
		"nothing": "exit status 2",
	} {
		l := &tailLog{text: []byte(text)}
		if got := l.reason(errors.New("exit status 2")); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
