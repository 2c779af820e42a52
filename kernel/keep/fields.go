package keep

import (
	"reflect"
	"slices"
	"strings"
)

// The paths of all fields of its type follow a gob value in its file, because gob silently drops
// fields that the type no longer has.

// maxFields is the number of fields from which a type's fields are not listed.
const maxFields = 1000

// lostFields returns the fields of a variable's kept value that its type lacks now, without the
// fields in them.
func lostFields(before, now []string) (lost []string) {
	for _, path := range before {
		inLost := slices.ContainsFunc(lost, func(l string) bool { return strings.HasPrefix(path, l+".") || strings.HasPrefix(path, l+"[") })
		if len(now) > 0 && !inLost && !slices.Contains(now, path) {
			lost = append(lost, path)
		}
	}
	return lost
}

// fieldsOf returns the paths of all exported fields in the type of a variable, as in
// "x[...].Next"; none if there are too many. A recursive type is visited once. It
// refuses a type with a part that gob never loads, even if a value lacks that part.
func fieldsOf(name string, t reflect.Type) ([]string, error) {
	var all fields
	all.add(t, name, nil)
	if len(all.paths) > maxFields {
		return nil, all.err
	}
	return all.paths, all.err
}

// fields are the fields of a type, and why the type can't be kept.
type fields struct {
	paths []string
	err   error
}

func (f *fields) add(t reflect.Type, at string, above []reflect.Type) {
	switch {
	case len(f.paths) > maxFields || f.err != nil || slices.Contains(above, t):
		return
	case t.Kind() != reflect.Pointer && codes(t):
		f.err = checkPair(t, &path{step: at})
		return
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Pointer:
		f.add(t.Elem(), at, above)
	case reflect.Slice, reflect.Array:
		f.add(t.Elem(), at+"[...]", above)
	case reflect.Map:
		f.add(t.Key(), at+"[...]", above)
		f.add(t.Elem(), at+"[...]", above)
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() {
				f.paths = append(f.paths, at+"."+field.Name)
				f.add(field.Type, at+"."+field.Name, above)
			}
		}
	}
}
