package yamldoc

import (
	"strings"
	"testing"
)

func TestSingle(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"# nothing\n", ""},
		{"a: 1\n", ""},
		{"---\na: 1\n...\n", ""},
		{"a: 1\n---\n", ""},
		{"a: 1\n---\n# the end\n", ""},
		{"a: 1\n---\nb: 2\n", "line 3: a second document"},
		{"---\n---\nb: 2\n", "line 3: a second document"},
		{"a: 1\n---\n\n\n- b\n---\nc: 1\n", "line 5: a second document"},
		{"a: [\n", "did not find expected"},
	} {
		err := Single([]byte(tc.text))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
}
