package keep

import (
	"reflect"
	"slices"
	"strings"
)

// After a value that gob encodes, its file has the paths of all fields of its type: gob doesn't say
// that it drops a field because the type that it decodes lacks it.

// maxFields is the number of fields from which a type's fields are not listed.
const maxFields = 1000

// lostFields returns the fields of a variable's kept value that its type lacks now, without the
// fields in them.
func lostFields(name string, before []string, t reflect.Type) (lost []string) {
	now := fieldsOf(t)
	if now == nil {
		return nil
	}
	for _, path := range before {
		inLost := slices.ContainsFunc(lost, func(l string) bool { return strings.HasPrefix(name+path, l+".") || strings.HasPrefix(name+path, l+"[") })
		if !inLost && !slices.Contains(now, path) {
			lost = append(lost, name+path)
		}
	}
	return lost
}

// fieldsOf returns the paths of all exported fields in a type, as in "[...].Next"; none if there
// are too many. A type that leads back to itself is entered once.
func fieldsOf(t reflect.Type) []string {
	var paths []string
	addFields(&paths, t, "", nil)
	if len(paths) > maxFields {
		return nil
	}
	return paths
}

func addFields(paths *[]string, t reflect.Type, at string, above []reflect.Type) {
	if len(*paths) > maxFields || codes(t) || slices.Contains(above, t) {
		return
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Pointer:
		addFields(paths, t.Elem(), at, above)
	case reflect.Slice, reflect.Array:
		addFields(paths, t.Elem(), at+"[...]", above)
	case reflect.Map:
		addFields(paths, t.Key(), at+"[...]", above)
		addFields(paths, t.Elem(), at+"[...]", above)
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() {
				*paths = append(*paths, at+"."+field.Name)
				addFields(paths, field.Type, at+"."+field.Name, above)
			}
		}
	}
}
