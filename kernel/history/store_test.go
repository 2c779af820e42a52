package history

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "history.jsonl")
	for session, sources := range [][]string{{"a := 1", "b := 2"}, {"a := 1", "c\n:= 3"}} {
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if s.session != session+1 {
			t.Errorf("session %d, want %d", s.session, session+1)
		}
		for i, source := range sources {
			if err := s.Add(Entry{Line: i + 1, Source: source}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A process died while writing.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("{\"sess\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		get  func() ([]Entry, error)
		want []Entry
	}{
		{name: "tail", get: func() ([]Entry, error) { return s.Tail(2) }, want: []Entry{{2, 1, "a := 1"}, {2, 2, "c\n:= 3"}}},
		{name: "range", get: func() ([]Entry, error) { return s.Range(1, 2, 3) }, want: []Entry{{1, 2, "b := 2"}}},
		{name: "range of the session before", get: func() ([]Entry, error) { return s.Range(-1, 1, 2) }, want: []Entry{{2, 1, "a := 1"}}},
		{name: "range without end", get: func() ([]Entry, error) { return s.Range(1, 2, 0) }, want: []Entry{{1, 2, "b := 2"}}},
		{name: "this session is empty", get: func() ([]Entry, error) { return s.Range(0, 1, 0) }},
		{name: "search", get: func() ([]Entry, error) { return s.Search("a*", 0, false) }, want: []Entry{{1, 1, "a := 1"}, {2, 1, "a := 1"}}},
		{name: "search for unique", get: func() ([]Entry, error) { return s.Search("a*", 0, true) }, want: []Entry{{2, 1, "a := 1"}}},
		{name: "search over lines", get: func() ([]Entry, error) { return s.Search("c*?", 5, false) }, want: []Entry{{2, 2, "c\n:= 3"}}},
		{name: "search for the whole text", get: func() ([]Entry, error) { return s.Search("a", 0, false) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.get()
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

// TestWildcards: only * and ? have a meaning, and the whole text counts.
func TestWildcards(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"*a?", "b\na\n", true}, {"*", "", true}, {"?", "", false}, {"?", "ä", true}, {"a", "ab", false}, {"a*b", "axxb", true},
		{"a.b", "axb", false}, {`a\*`, `a\bc`, true}, {`a\*`, "a*", false}, {"[a]", "[a]", true}, {"[a]", "a", false},
	} {
		if got := wildcards(tt.pattern).MatchString(tt.text); got != tt.want {
			t.Errorf("%q in %q: %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}
}

// TestTrim: a new session drops the older half of a history that has grown too long; session
// numbers continue.
func TestTrim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	var text strings.Builder
	for i := range mostEntries + 1 {
		fmt.Fprintf(&text, `{"session":7,"line":%d,"source":"x"}`+"\n", i+1)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(Entry{Line: 1, Source: "new"}); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Tail(0)
	if err != nil || len(entries) != mostEntries/2+1 || s.session != 8 {
		t.Fatalf("%d entries, session %d, %v; want %d, 8", len(entries), s.session, err, mostEntries/2+1)
	}
	if first, last := entries[0], entries[len(entries)-1]; first.Line != mostEntries/2+2 || last != (Entry{8, 1, "new"}) {
		t.Errorf("from %v to %v", first, last)
	}
}

// TestKeptLock: a process that never releases the file does not block others forever.
func TestKeptLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock(file); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(Entry{Line: 1, Source: "x"}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("error %v", err)
	}
	_ = file.Close()
	if err := s.Add(Entry{Line: 2, Source: "y"}); err != nil {
		t.Error(err)
	}
}
