package kernel

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// garbled is what GoNB makes of an argument.
func garbled(text string) string {
	var all string
	for i := range len(text) {
		all += string(rune(text[i]))
	}
	return all
}

func FuzzUngarbled(f *testing.F) {
	for _, text := range []string{"", "plain", "Zoë", "名", "𝄞 Ã©"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := ungarbled(garbled(text)); utf8.ValidString(text) && got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}

// TestUngarbledEnviron: only the variables that magics have set were garbled.
func TestUngarbledEnviron(t *testing.T) {
	got := ungarbledEnviron([]string{"A=" + garbled("Zoë"), "B=" + garbled("Zoë"), "C=c"}, []string{"A", "C"})
	if want := []string{"A=Zoë", "B=" + garbled("Zoë"), "C=c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for command, want := range map[string]bool{"/s/cell.run": true, "/s/seed/ranks": true, "/bin/bash": false} {
		if got := isProgram([]string{command}); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}
