package keep

import (
	"errors"
	"strings"
)

// Declared maps the name of each kept variable to the hash of its declaration. A value is not
// loaded if it was kept under another declaration.
type Declared map[string]string

// New is a prefix of a hash that makes Load ignore the value that earlier programs kept: since then
// the variable was removed and declared again.
const New = "new "

// Unused is a prefix of a hash for a variable that the program doesn't use: a kept value stays as
// it is, and takes no time.
const Unused = "unused "

// hash returns the hash of a variable's declaration; "" if it is not known.
func (d Declared) hash(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(d[name], New), Unused)
}

func (d Declared) unused(name string) bool { return strings.HasPrefix(d[name], Unused) }

// starts reports whether a variable starts with its initial value. before is the hash of the
// declaration under which its value was kept. If the declaration is the same, but not the code or
// the files that its initial value comes from, the error says so.
func (d Declared) starts(name, before string) (bool, error) {
	now := d.hash(name)
	switch {
	case strings.HasPrefix(d[name], New):
		return true, nil
	case now == "" || before == "" || now == before:
		return false, nil
	case len(now) > codeAt && len(before) > codeAt && now[:codeAt] == before[:codeAt]:
		return true, errCode
	}
	return true, nil
}

// codeAt is gocell's CodeAt: the part of a hash from there on depends on the code and the files
// that the variable's initial value comes from.
const codeAt = 8

var errCode = errors.New("a package or file that its declaration uses has changed since it was kept")
