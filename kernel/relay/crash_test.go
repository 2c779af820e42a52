package relay

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gonbatch/kernel/wire"
)

// TestCrash: output that looks like a panic is held back for the error, unless the program
// continues to write after it.
func TestCrash(t *testing.T) {
	const trace = "panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n"
	const goesOn = "(it goes on)" // stands for the time after which the text is passed on
	tests := []struct {
		name    string
		written []string
		passed  []string // before the end
		end     string
	}{
		{name: "plain", written: []string{"a\n", "b\n"}, passed: []string{"a\n", "b\n"}},
		{name: "panic", written: []string{"a\n", trace, "exit status 2\n"}, passed: []string{"a\n"}, end: trace + "exit status 2\n"},
		{name: "in pieces", written: []string{"panic: ", "boom", "\n\ngoroutine 1"}, end: "panic: boom\n\ngoroutine 1"},
		{name: "behind other text", written: []string{"a\nb\n" + trace}, passed: []string{"a\nb\n"}, end: trace},
		{name: "not at a line's begin", written: []string{"no panic: here\n"}, passed: []string{"no panic: here\n"}},
		{name: "a program that goes on", written: []string{"panic: handled\n", "a\n", goesOn, "b\n"}, passed: []string{"panic: handled\n", "a\n", "b\n"}, end: "panic: handled\na\nb\n"},
		{name: "that then panics", written: []string{"panic: handled\n", goesOn, "b\n", trace, "exit status 2\n"}, passed: []string{"panic: handled\n", "b\n"}, end: trace + "exit status 2\n"},
		{name: "that then exits", written: []string{"panic: handled\n", goesOn, "b\n", "exit status 3\n"}, passed: []string{"panic: handled\n", "b\n"}, end: "exit status 3\n"},
		{name: "a panic on a slow machine", written: []string{trace, goesOn, "exit status 2\n"}, passed: []string{trace, "exit status 2\n"}, end: trace + "exit status 2\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var passed []string
			c := crash{wait: time.Hour, pass: func(m *wire.Message) {
				_, text := stream(m)
				passed = append(passed, text)
			}}
			for _, text := range tt.written {
				if text == goesOn {
					c.release()
					continue
				}
				c.take(newMessage(t, "stream", object{"name": "stderr", "text": text}))
			}
			if !slices.Equal(passed, tt.passed) {
				t.Errorf("passed on %q, want %q", passed, tt.passed)
			}
			if end := c.end(); end != tt.end {
				t.Errorf("end %q, want %q", end, tt.end)
			}
		})
	}
}

// TestCrashInTime: held-back output is passed on after a while, and too much of it at once.
func TestCrashInTime(t *testing.T) {
	var mu sync.Mutex
	var size int
	c := crash{wait: time.Millisecond, pass: func(m *wire.Message) {
		mu.Lock()
		defer mu.Unlock()
		_, text := stream(m)
		size += len(text)
	}}
	passed := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			got := size
			mu.Unlock()
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes were passed on, want %d", got, want)
			}
		}
	}
	c.take(newMessage(t, "stream", object{"name": "stderr", "text": "panic: x\n"}))
	passed(9)
	c.take(newMessage(t, "stream", object{"name": "stderr", "text": "panic: " + strings.Repeat("y", mostHeld)}))
	passed(9 + 7 + mostHeld)
	if end := c.end(); len(end) != mostHeld {
		t.Errorf("%d bytes are kept", len(end))
	}
}
