package keep

import "strings"

// Declared maps the name of each kept variable to the hash of its declaration. A value is not
// loaded if it was kept under another declaration.
type Declared map[string]string

// New is a prefix of a hash that makes Load ignore the value that earlier programs kept: since then
// the variable was removed and declared again.
const New = "new "

// hash returns the hash of a variable's declaration; "" if it is not known.
func (d Declared) hash(name string) string { return strings.TrimPrefix(d[name], New) }

// starts reports whether a variable starts with its initial value. before is the hash of the
// declaration under which its value was kept.
func (d Declared) starts(name, before string) bool {
	now, isNew := strings.CutPrefix(d[name], New)
	return isNew || now != "" && before != "" && now != before
}
