package gocell

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	tests := []struct {
		name, line string
		want       []string
	}{
		{"words", "args  -a\tb", []string{"args", "-a", "b"}},
		{"quotes", `args "two words" ""`, []string{"args", "two words", ""}},
		{"escapes in quotes", `args "a\"b\n\t\\"`, []string{"args", "a\"b\n\t\\"}},
		{"backslash outside", `args a\b`, []string{"args", `a\b`}},
		{"single quotes are ordinary", `args 'a b'`, []string{"args", "'a", "b'"}},
		{"é stays", `args é"é é"`, []string{"args", "éé é"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, split(tt.line)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
