package keep

import (
	"fmt"
	"reflect"
	"strings"
)

// check returns an error for the value of the variable called name if gob would silently drop a
// part of it, fail without naming the part, or never finish.
func check(v reflect.Value, name string) error {
	if err := checkType(v.Type(), &path{step: name}, map[reflect.Type]bool{}); err != nil {
		return err
	}
	c := checker{above: map[visit]bool{}, codings: map[reflect.Type]coding{}}
	return c.check(v, &path{step: name}, true)
}

type checker struct {
	// above are the pointers on the path to the part that is being checked.
	above   map[visit]bool
	codings map[reflect.Type]coding
}

// visit is a pointer, map or slice that leads to a part of a value.
type visit struct {
	t       reflect.Type
	pointer uintptr
	length  int
}

// check checks the part of a value at a path. field is set for struct fields, because gob drops
// fields that are zero; a kept variable counts as a field.
func (c checker) check(v reflect.Value, at *path, field bool) error {
	if !v.IsValid() || field && drops(v) {
		return nil
	}
	if _, ok := codecs[v.Type()]; ok {
		return fmt.Errorf("%s is a %s, which can be kept only in a variable of its own", at, v.Type())
	}
	if field && v.Kind() == reflect.Pointer {
		if err := checkTarget(v, at); err != nil {
			return err
		}
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("%s is a nil %s, and gob encodes nil pointers only in the fields of structs: leave it out, or keep structs with such a field", at, v.Type())
	}
	if codes(v.Type()) {
		return c.checkCoding(v, at)
	}
	switch v.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return inProcess(at, v.Kind())
	case reflect.Pointer:
		return c.descend(v, 0, at, func() error { return c.check(v.Elem(), at, field) })
	case reflect.Interface:
		return c.check(v.Elem(), at, false)
	case reflect.Struct:
		return c.checkFields(v, at)
	case reflect.Slice, reflect.Array:
		return c.checkList(v, at)
	case reflect.Map:
		return c.checkMap(v, at)
	}
	return nil
}

// descend runs a check of what a pointer, map or slice leads to, unless it leads back to itself.
func (c checker) descend(v reflect.Value, length int, at *path, check func() error) error {
	here := visit{v.Type(), v.Pointer(), length}
	if c.above[here] {
		return fmt.Errorf("%s contains a cycle: keep a value without one", at)
	}
	c.above[here] = true
	defer delete(c.above, here)
	return check()
}

// drops reports whether gob leaves out a field with the value. It doesn't leave out the elements of
// an array, even if all of them are zero, and needs the address of a value whose pointer has the
// encoder.
func drops(v reflect.Value) bool {
	switch t := v.Type(); {
	case !v.IsZero():
		return false
	case codes(t):
		return v.CanAddr() || !onPointer(t)
	}
	return v.Kind() != reflect.Array && v.Kind() != reflect.Struct
}

// inProcess returns the error for a value that means nothing to another process.
func inProcess(at fmt.Stringer, kind reflect.Kind) error {
	return fmt.Errorf("%s is a %s, which exists only in its own process: keep what it is made of", at, kind)
}

// checkTarget refuses a pointer to a value that gob leaves out: it would be loaded as nil.
func checkTarget(v reflect.Value, at *path) error {
	for depth := 0; v.Kind() == reflect.Pointer && !v.IsNil() && depth < 10; depth++ { // A pointer can point to itself.
		v = v.Elem()
	}
	empty := v.IsZero() && (v.Kind() != reflect.Struct || encodesItself(v.Type()))
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		empty = v.Len() == 0
	case reflect.Pointer:
		return fmt.Errorf("%s points to a nil pointer, which can't be restored: keep a pointer to a value", at)
	}
	if !empty {
		return nil
	}
	return fmt.Errorf("%s points to %s, and would be nil when it is loaded: keep the value itself, not a pointer to it", at, describe(v))
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

func (c checker) checkFields(v reflect.Value, at *path) error {
	for i := range v.NumField() {
		field := v.Field(i)
		exported := v.Type().Field(i).IsExported()
		if drops(field) || !exported && field.IsZero() {
			continue
		}
		name := &path{above: at, step: "." + v.Type().Field(i).Name}
		if !exported {
			return fmt.Errorf("the field %s of %s is not exported, so gob leaves it out: %s", name, v.Type(), advice(v.Type()))
		}
		if err := c.check(field, name, true); err != nil {
			return err
		}
	}
	return nil
}

// advice suggests what to do about a type with unexported fields.
func advice(t reflect.Type) string {
	return adviceOn(t, "export it, or give the type GobEncode and GobDecode")
}

// adviceOn returns the change to make to a type, if it is defined in the notebook: only such a type
// can be changed.
func adviceOn(t reflect.Type, change string) string {
	if t.PkgPath() == "main" || t.Name() == "" {
		return change
	}
	if t.PkgPath() == "gonbatch/trainer" && t.Name() == "Trainer" {
		return "keep its model: var weights = model.NewStore(), trainer.New(..., trainer.WithStore(weights)), and %keep weights"
	}
	return fmt.Sprintf("the type is package %s's: keep what it is made from, in a variable of another type, and make it again in each cell", t.PkgPath())
}

func (c checker) checkList(v reflect.Value, at *path) error {
	if plain(v.Type().Elem()) || v.Len() == 0 {
		return nil
	}
	elements := func() error {
		for i := range v.Len() {
			if err := c.check(v.Index(i), &path{above: at, index: i}, false); err != nil {
				return err
			}
		}
		return nil
	}
	if v.Kind() == reflect.Array {
		return elements()
	}
	return c.descend(v, v.Len(), at, elements)
}

func (c checker) checkMap(v reflect.Value, at *path) error {
	if plain(v.Type().Elem()) && plain(v.Type().Key()) || v.Len() == 0 {
		return nil
	}
	return c.descend(v, 0, at, func() error {
		for entries := v.MapRange(); entries.Next(); {
			entry := &path{above: at, key: entries.Key()}
			for _, part := range []reflect.Value{entries.Key(), entries.Value()} {
				if err := c.check(part, entry, false); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// plain reports whether values of a type contain nothing to check.
func plain(t reflect.Type) bool {
	return (t.Kind() <= reflect.Complex128 || t.Kind() == reflect.String) && !codes(t)
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
