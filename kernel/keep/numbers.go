package keep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"gonbatch/internal/hugepages"
)

// Slices of numbers are written as they lie in memory, many times faster than with gob: first the
// text of their type, then for each slice its length and its elements.

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

// isNumbers reports whether values of a type are encoded as numbers by this file.
func isNumbers(t reflect.Type) (text string, ok bool) {
	text = numbers(t)
	return text + "\n", t.Kind() == reflect.Slice && text != ""
}

// chunk is the number of bytes written or read at once.
const chunk = 1 << 20

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
	for memory := memoryOf(v); len(memory) > 0; {
		n := min(chunk, len(memory))
		if _, err := w.Write(memory[:n]); err != nil {
			return err
		}
		memory = memory[n:]
	}
	return nil
}

// readNumbers reads a slice of type t from at most left bytes.
func readNumbers(r io.Reader, t reflect.Type, left *int64) (reflect.Value, error) {
	var header [8]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
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
	v := reflect.MakeSlice(t, int(length), int(length))
	if !atom {
		for i := range v.Len() {
			of, err := readNumbers(r, t.Elem(), left)
			if err != nil {
				return of, err
			}
			v.Index(i).Set(of)
		}
		return v, nil
	}
	memory := memoryOf(v)
	hugepages.Advise(memory)
	n, err := io.ReadFull(r, memory)
	*left -= int64(n)
	if err != nil {
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
		return errors.New("it is of another type")
	}
	return nil
}

func errCutOff(err error) error { return fmt.Errorf("the file is cut off: %w", err) }
