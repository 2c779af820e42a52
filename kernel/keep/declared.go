package keep

import "strings"

// Declared has hashes of the declarations of kept variables, by name. A value that another
// declaration began is not loaded.
type Declared map[string]string

// New before a hash says that the value of earlier programs doesn't count: the variable was removed
// since, and declared again.
const New = "new "

// hash is the hash of a variable's declaration; "" if it is not known.
func (d Declared) hash(name string) string { return strings.TrimPrefix(d[name], New) }

// starts reports whether a variable starts with its initial value, given the hash of the
// declaration that its kept value began with.
func (d Declared) starts(name, before string) bool {
	now, isNew := strings.CutPrefix(d[name], New)
	return isNew || now != "" && before != "" && now != before
}
