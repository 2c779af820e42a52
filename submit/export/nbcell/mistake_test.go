package nbcell

import (
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestExcerpt: a message quotes the part of a long line around the column, and at is the column in
// it.
func TestExcerpt(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 2000 {
		line := []rune(strings.Repeat("aé名", random.Intn(200)))
		before := string(line[:random.Intn(len(line)+1)])
		column := len(before) + 1
		text := before + "X" + string(line)
		excerpt, at := Excerpt(text, column)
		if len(excerpt) > longestLine+12 || !utf8.ValidString(excerpt) || excerpt[at-1] != 'X' {
			t.Fatalf("column %d of %q became %d of %q", column, text, at, excerpt)
		}
	}
	if short, at := Excerpt("x := y", 6); short != "x := y" || at != 6 {
		t.Errorf("a short line became %q, %d", short, at)
	}
	if long, _ := Excerpt(strings.Repeat("x", 30_000), 0); len(long) > longestLine+3 {
		t.Errorf("%d bytes without a column", len(long))
	}
}
