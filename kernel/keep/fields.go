package keep

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// After a value that gob encodes, its file has the paths of all fields of its type: gob doesn't say
// that it drops a field because the type that it decodes lacks it.

// fieldsMark begins the text with the paths. Its length follows, in lengthDigits digits.
const (
	fieldsMark   = "\nfields "
	lengthDigits = 8
)

// maxFields is the number of fields from which a type's fields are not listed.
const maxFields = 1000

func writeFields(w io.Writer, t reflect.Type) error {
	paths := fieldsOf(t)
	if paths == nil {
		return nil
	}
	text := fieldsMark + strings.Join(paths, " ")
	_, err := fmt.Fprintf(w, "%s%*d", text, lengthDigits, len(text))
	return err
}

// readFields returns the fields that a file lists; none if it has no list.
func readFields(f *os.File) []string {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	end := info.Size() - lengthDigits
	digits := make([]byte, lengthDigits)
	if _, err := f.ReadAt(digits, max(end, 0)); err != nil {
		return nil
	}
	length, err := strconv.ParseUint(strings.TrimSpace(string(digits)), 10, 32)
	if err != nil || int64(length) > end {
		return nil
	}
	text := make([]byte, length)
	if _, err := f.ReadAt(text, end-int64(length)); err != nil {
		return nil
	}
	paths, ok := strings.CutPrefix(string(text), fieldsMark)
	if !ok {
		return nil
	}
	return strings.Fields(paths)
}

// lostFields returns the fields that a file lists and a type lacks, without the fields in them.
func lostFields(f *os.File, t reflect.Type) (lost []string) {
	before, now := readFields(f), fieldsOf(t)
	if now == nil {
		return nil
	}
	for _, path := range before {
		inLost := slices.ContainsFunc(lost, func(l string) bool { return strings.HasPrefix(path, l+".") || strings.HasPrefix(path, l+"[") })
		if !inLost && !slices.Contains(now, path) {
			lost = append(lost, path)
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
