package keep

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"reflect"
	"slices"
)

// digest returns a hash that is equal for values that are equal after loading, whatever the order
// of their map entries. The value must have passed check.
func digest(v reflect.Value) string {
	sum := sha256.New()
	digestTo(sum, v)
	return string(sum.Sum(nil))
}

func digestTo(sum hash.Hash, v reflect.Value) {
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		fmt.Fprint(sum, "nil;")
		return
	}
	if encodesItself(v.Type()) {
		digestEncoded(sum, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		fmt.Fprint(sum, "&")
		digestTo(sum, v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			// Two types may have the same name. Digests are only compared within a process.
			fmt.Fprintf(sum, "%x:", reflect.ValueOf(v.Elem().Type()).Pointer())
		}
		digestTo(sum, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				digestTo(sum, v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		fmt.Fprintf(sum, "%d[", v.Len())
		if v.Kind() == reflect.Slice && isNumber(v.Type().Elem().Kind()) && !encodesItself(v.Type().Elem()) {
			_, _ = sum.Write(memoryOf(v)) // A hash never returns an error.
			return
		}
		for i := range v.Len() {
			digestTo(sum, v.Index(i))
		}
	case reflect.Map:
		digestMap(sum, v)
	case reflect.String:
		fmt.Fprintf(sum, "%d:%s", v.Len(), v.String())
	default:
		if plain(v.Type()) {
			digestNumber(sum, v)
		}
	}
}

func digestMap(sum hash.Hash, v reflect.Value) {
	var entries []string
	for entry := v.MapRange(); entry.Next(); {
		entries = append(entries, digest(entry.Key())+digest(entry.Value()))
	}
	slices.Sort(entries)
	fmt.Fprintf(sum, "%d{", len(entries))
	for _, entry := range entries {
		fmt.Fprint(sum, entry)
	}
}

func digestNumber(sum hash.Hash, v reflect.Value) {
	var number [2]uint64
	switch {
	case v.CanInt():
		number[0] = uint64(v.Int())
	case v.CanUint():
		number[0] = v.Uint()
	case v.CanFloat():
		number[0] = math.Float64bits(v.Float())
	case v.CanComplex():
		number[0], number[1] = math.Float64bits(real(v.Complex())), math.Float64bits(imag(v.Complex()))
	case v.Kind() == reflect.Bool && v.Bool():
		number[0] = 1
	}
	text := binary.LittleEndian.AppendUint64(nil, number[0])
	_, _ = sum.Write(binary.LittleEndian.AppendUint64(text, number[1]))
}

// digestEncoded adds the gob encoding of a value to the digest.
func digestEncoded(sum hash.Hash, v reflect.Value) {
	var text bytes.Buffer
	box := newBox(v.Type())
	box.Elem().Field(0).Set(v)
	if err := encodeBox(&text, box); err != nil {
		fmt.Fprint(&text, err)
	}
	fmt.Fprintf(sum, "%d=%s", text.Len(), text.Bytes())
}
