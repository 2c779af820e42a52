package rundir

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// maxSlug keeps directory names readable and far below every file system's limit.
const maxSlug = 40

// uniqueName returns <slug>-<date>-<time>-<4 hex digits>.
func uniqueName(name string, now time.Time) string {
	return fmt.Sprintf("%s-%s-%04x", Slug(name), now.Format("20060102-150405"), rand.N(1<<16))
}

// uniqueEnd matches the end of such a name.
var uniqueEnd = regexp.MustCompile(`-\d{8}-\d{6}-[0-9a-f]{4}$`)

// Slug turns any text into a safe file name: lower-case ASCII letters, digits and single dashes. It
// is never empty, never begins with a dash, and has at most 40 characters.
func Slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	slug := strings.Join(words, "-")
	if len(slug) > maxSlug {
		slug = strings.TrimRight(slug[:maxSlug], "-")
	}
	return cmp.Or(slug, "run")
}
