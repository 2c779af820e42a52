package keep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unsafe"

	"gonbatch/internal/hugepages"
)

// Slices of numbers are written as they lie in memory, many times faster than with gob: first the
// text of their type, then for each slice its length and its elements. All elements are aligned.

// isNumber reports whether values of a kind are written as they lie in memory.
func isNumber(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr
}

// numbers describes a type that consists of numbers, in slices; it returns "" for any other type.
func numbers(t reflect.Type) string {
	if encodesItself(t) {
		return ""
	}
	switch {
	case isNumber(t.Kind()):
		return t.Kind().String()
	case t.Kind() == reflect.Slice:
		if of := numbers(t.Elem()); of != "" {
			return "[]" + of
		}
	}
	return ""
}

// alignment is that of the first element in a file, in bytes. A slice's length takes as many bytes.
const alignment = 8

// isNumbers reports whether values of a type are encoded as numbers by this file, and returns the
// text of the type.
func isNumbers(t reflect.Type) (text string, ok bool) {
	text = numbers(t)
	padding := strings.Repeat(" ", alignment-1-len(text)%alignment)
	return text + padding + "\n", t.Kind() == reflect.Slice && text != ""
}

// none is the length of a nil slice.
const none = ^uint64(0)

func writeNumbers(w io.Writer, v reflect.Value) error {
	length := uint64(v.Len())
	if v.IsNil() {
		length = none
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, length)); err != nil {
		return err
	}
	if !isNumber(v.Type().Elem().Kind()) {
		for i := range v.Len() {
			if err := writeNumbers(w, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := w.Write(memoryOf(v))
	return err
}

// readNumbers reads or maps a slice of type t from at most left bytes.
func readNumbers(f *os.File, t reflect.Type, left *int64) (reflect.Value, error) {
	var header [8]byte
	if _, err := io.ReadFull(f, header[:]); err != nil {
		return reflect.Value{}, errCutOff(err)
	}
	length := binary.LittleEndian.Uint64(header[:])
	if *left -= int64(len(header)); length == none {
		return reflect.Zero(t), nil
	}
	atom := isNumber(t.Elem().Kind())
	size := uint64(len(header))
	if atom {
		size = uint64(t.Elem().Size())
	}
	if *left < 0 || length > uint64(*left)/size {
		return reflect.Value{}, errCutOff(io.ErrUnexpectedEOF)
	}
	if atom {
		*left -= int64(length * size)
		return readElements(f, t, int(length))
	}
	v := reflect.MakeSlice(t, int(length), int(length))
	for i := range v.Len() {
		of, err := readNumbers(f, t.Elem(), left)
		if err != nil {
			return of, err
		}
		v.Index(i).Set(of)
	}
	return v, nil
}

// readElements reads or maps a slice of type t whose elements are numbers.
func readElements(f *os.File, t reflect.Type, length int) (reflect.Value, error) {
	if length > 0 && uint64(length)*uint64(t.Elem().Size()) >= large {
		if v, ok := mapSlice(f, t, length); ok {
			return v, nil
		}
	}
	v := reflect.MakeSlice(t, length, length)
	memory := memoryOf(v)
	hugepages.Advise(memory)
	if _, err := io.ReadFull(f, memory); err != nil {
		return v, errCutOff(err)
	}
	return v, nil
}

// memoryOf returns the memory of a slice of numbers.
func memoryOf(v reflect.Value) []byte {
	if v.Len() == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

// readType checks that the text of the wanted type comes next.
func readType(r io.Reader, want string) error {
	text := make([]byte, len(want))
	if _, err := io.ReadFull(r, text); err != nil || string(text) != want {
		return errors.New("it has a different type")
	}
	return nil
}

func errCutOff(err error) error { return fmt.Errorf("the file is truncated: %w", err) }
