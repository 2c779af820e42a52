package keep

import (
	"encoding"
	"encoding/gob"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// check returns an error for a value that gob would silently drop, or never finish encoding. field
// is set for struct fields, because gob drops fields that are zero; a kept variable counts as a
// field. above holds the pointers on the path to v.
func check(v reflect.Value, path string, field bool, above []uintptr) error {
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	if _, ok := codecs[v.Type()]; ok {
		return fmt.Errorf("%s is a %s, which can be kept only in a variable of its own", path, v.Type())
	}
	if field && v.Kind() == reflect.Pointer {
		if err := checkTarget(v, path); err != nil {
			return err
		}
	}
	if encodesItself(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return inProcess(path, v.Kind())
	case reflect.Pointer:
		if slices.Contains(above, v.Pointer()) {
			return fmt.Errorf("%s leads back to itself: keep a value without cycles", path)
		}
		return check(v.Elem(), path, field, append(above, v.Pointer()))
	case reflect.Interface:
		return check(v.Elem(), path, false, above)
	case reflect.Struct:
		return checkFields(v, path, above)
	case reflect.Slice, reflect.Array:
		return checkList(v, path, above)
	case reflect.Map:
		return checkMap(v, path, above)
	}
	return nil
}

// inProcess returns the error for a value that means nothing to another process.
func inProcess(path string, kind reflect.Kind) error {
	return fmt.Errorf("%s is a %s, which exists only in its own process: keep what it is made of", path, kind)
}

// checkTarget refuses a pointer to a value that gob leaves out: it would be loaded as nil.
func checkTarget(v reflect.Value, path string) error {
	for depth := 0; v.Kind() == reflect.Pointer && !v.IsNil() && depth < 10; depth++ { // A pointer can point to itself.
		v = v.Elem()
	}
	empty := v.IsZero() && (v.Kind() != reflect.Struct || encodesItself(v.Type()))
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		empty = v.Len() == 0
	case reflect.Pointer:
		return fmt.Errorf("%s points to a nil pointer, which can't be restored: keep a pointer to a value", path)
	}
	if !empty {
		return nil
	}
	return fmt.Errorf("%s points to %s, and would be nil when it is loaded: keep the value itself, not a pointer to it", path, describe(v))
}

// describe formats a zero value.
func describe(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return `""`
	case reflect.Bool, reflect.Slice, reflect.Map:
		return fmt.Sprint(v)
	}
	if plain(v.Type()) {
		return fmt.Sprint(v)
	}
	return "the zero value of " + v.Type().String()
}

func checkFields(v reflect.Value, path string, above []uintptr) error {
	for i := range v.NumField() {
		field, name := v.Field(i), path+"."+v.Type().Field(i).Name
		if field.IsZero() {
			continue
		}
		if !v.Type().Field(i).IsExported() {
			return fmt.Errorf("the field %s of %s is not exported, so gob leaves it out: %s", name, v.Type(), advice(v.Type()))
		}
		if err := check(field, name, true, above); err != nil {
			return err
		}
	}
	return nil
}

// advice suggests what to do about a type with unexported fields. Only a type defined in the
// notebook can be changed.
func advice(t reflect.Type) string {
	if t.PkgPath() == "main" || t.Name() == "" {
		return "export it, or give the type GobEncode and GobDecode"
	}
	if t.PkgPath() == "gonbatch/trainer" && t.Name() == "Trainer" {
		return "keep its model: var weights = model.NewStore(), trainer.New(..., trainer.WithStore(weights)), and %keep weights"
	}
	return fmt.Sprintf("the type is package %s's: keep what it is made from, in a variable of another type, and make it again in each cell", t.PkgPath())
}

func checkList(v reflect.Value, path string, above []uintptr) error {
	if plain(v.Type().Elem()) {
		return nil
	}
	if v.Kind() == reflect.Slice {
		if slices.Contains(above, v.Pointer()) {
			return fmt.Errorf("%s leads back to itself: keep a value without cycles", path)
		}
		above = append(above, v.Pointer())
	}
	for i := range v.Len() {
		if err := check(v.Index(i), fmt.Sprintf("%s[%d]", path, i), false, above); err != nil {
			return err
		}
	}
	return nil
}

func checkMap(v reflect.Value, path string, above []uintptr) error {
	if plain(v.Type().Elem()) && plain(v.Type().Key()) {
		return nil
	}
	if slices.Contains(above, v.Pointer()) {
		return fmt.Errorf("%s leads back to itself: keep a value without cycles", path)
	}
	above = append(above, v.Pointer())
	for entries := v.MapRange(); entries.Next(); {
		at := fmt.Sprintf("%s[%v]", path, entries.Key())
		for _, part := range []reflect.Value{entries.Key(), entries.Value()} {
			if err := check(part, at, false, above); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain reports whether values of a type contain nothing to check.
func plain(t reflect.Type) bool {
	return t.Kind() <= reflect.Complex128 || t.Kind() == reflect.String
}

// encodesItself reports whether gob encodes the type with one of the type's own methods.
func encodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	for _, method := range []reflect.Type{reflect.TypeFor[gob.GobEncoder](), reflect.TypeFor[encoding.BinaryMarshaler]()} {
		if t.Implements(method) || reflect.PointerTo(t).Implements(method) {
			return true
		}
	}
	return false
}

// gobError adds advice to an error from gob.
func gobError(err error) error {
	if err == nil {
		return nil
	}
	switch text := err.Error(); {
	case strings.Contains(text, "not registered for interface"):
		return fmt.Errorf("%w: a value in an interface needs gob.Register(T{}) in a func init_*", err)
	case strings.Contains(text, "has no exported fields"):
		return fmt.Errorf("%w: keep what it is made from, in a variable of another type", err)
	}
	return err
}
