package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
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

// TestMatches compares with a regular expression, and many wildcards take no longer than one.
func TestMatches(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := func(from string, most int) string {
		text := make([]byte, random.IntN(most))
		for i := range text {
			text[i] = from[random.IntN(len(from))]
		}
		return string(text)
	}
	for range 20_000 {
		pattern, text := letters("ab*?.", 8), letters("ab.\n", 10)
		expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		if got, want := matches([]rune(pattern), []rune(text)), regexp.MustCompile("(?s)^"+expression+"$").MatchString(text); got != want {
			t.Fatalf("%q in %q: %v, want %v", pattern, text, got, want)
		}
	}
	if matches([]rune(strings.Repeat("*a", 1000)+"b"), []rune(strings.Repeat("a", 100_000))) {
		t.Error("b was found")
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
