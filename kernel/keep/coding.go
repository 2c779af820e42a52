package keep

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"fmt"
	"reflect"
	"sync"
)

// method is a method with which a type encodes or decodes itself.
type method struct {
	name string
	of   reflect.Type
}

// encoders and decoders are the methods that gob uses instead of a type's fields, in its order of
// preference. It loads a value with the decoder at the index of the encoder that saved it.
var (
	encoders = []method{{"GobEncode", reflect.TypeFor[gob.GobEncoder]()}, {"MarshalBinary", reflect.TypeFor[encoding.BinaryMarshaler]()}}
	decoders = []method{{"GobDecode", reflect.TypeFor[gob.GobDecoder]()}, {"UnmarshalBinary", reflect.TypeFor[encoding.BinaryUnmarshaler]()}}
)

// first returns the index of the first method that a type or a pointer to it has; -1 if it has
// none.
func first(methods []method, t reflect.Type) int {
	for i, m := range methods {
		if t.Implements(m.of) || reflect.PointerTo(t).Implements(m.of) {
			return i
		}
	}
	return -1
}

// coders say how a type encodes itself.
type coders struct {
	// encoder and decoder are the indices of its methods; -1 if it has none.
	encoder, decoder int
	// onPointer is set if only a pointer to the type has the encoder, and embeds if the methods may
	// be those of an embedded field.
	onPointer, embeds bool
}

// knownCoders has the coders of types, by type.
var knownCoders sync.Map

func codersOf(t reflect.Type) coders {
	if known, ok := knownCoders.Load(t); ok {
		return known.(coders)
	}
	of := coders{encoder: -1, decoder: -1}
	if t.Kind() != reflect.Interface {
		of.encoder, of.decoder = first(encoders, t), first(decoders, t)
		of.onPointer = of.encoder >= 0 && !t.Implements(encoders[of.encoder].of)
	}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		of.embeds = of.embeds || t.Field(i).Anonymous && codes(t.Field(i).Type)
	}
	knownCoders.Store(t, of)
	return of
}

// encodesItself reports whether gob encodes the type with one of the type's own methods.
func encodesItself(t reflect.Type) bool { return codersOf(t).encoder >= 0 }

// codes reports whether gob encodes or decodes the type with one of the type's own methods.
func codes(t reflect.Type) bool { return codersOf(t).encoder >= 0 || codersOf(t).decoder >= 0 }

// checkPair refuses a type that codes itself if it lacks the encoder or the decoder.
func checkPair(t reflect.Type, at *path) error {
	e, d := codersOf(t).encoder, codersOf(t).decoder
	if e == d {
		return nil
	}
	has, lacks := decoders[max(d, 0)], encoders[max(d, 0)]
	if d < 0 || e >= 0 && e < d {
		has, lacks = encoders[e], decoders[e]
	}
	return fmt.Errorf("%s is a %s, which has %s but not %s: %s", at, t, has.name, lacks.name, adviceOn(t, "give it both"))
}

// checkCoding refuses a value that its own methods would encode only in part, or not decode.
func (c checker) checkCoding(v reflect.Value, at *path) error {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	t := v.Type()
	if err := checkPair(t, at); err != nil { // Behind an interface, fieldsOf doesn't see it.
		return err
	}
	of := codersOf(t)
	if of.onPointer && !v.CanAddr() {
		return fmt.Errorf("%s is a %s, which gob can't encode in a map or an interface: keep a *%[2]s there", at, t)
	}
	if !of.embeds {
		return nil
	}
	after, err := roundTrip(v)
	if err != nil {
		return fmt.Errorf("%s is a %s, which can't be loaded again: %w: %s", at, t, err, naming(t))
	}
	if lost := lostField(v, after); lost != "" {
		return fmt.Errorf("%s is a %s, which inherits its encoding from an embedded field, so %s would be lost: %s", at, t, lost, naming(t))
	}
	return nil
}

// roundTrip encodes and decodes a value. In a list, gob encodes it even if it is zero.
func roundTrip(v reflect.Value) (after reflect.Value, err error) {
	defer catch(&err, "its encoding")
	var text bytes.Buffer
	list := reflect.MakeSlice(reflect.SliceOf(v.Type()), 1, 1)
	list.Index(0).Set(v)
	if err := gob.NewEncoder(&text).EncodeValue(list); err != nil {
		return v, err
	}
	loaded := reflect.New(list.Type())
	err = gob.NewDecoder(&text).DecodeValue(loaded)
	return loaded.Elem().Index(0), err
}

// lostField returns the first field of a struct that has a value only before; "" if there is none.
func lostField(before, after reflect.Value) string {
	for i := range before.NumField() {
		field := before.Type().Field(i)
		if !before.Field(i).IsZero() && after.Field(i).IsZero() {
			return field.Name
		}
		if field.Anonymous && field.Type.Kind() == reflect.Struct && codersOf(field.Type).embeds {
			if lost := lostField(before.Field(i), after.Field(i)); lost != "" {
				return lost
			}
		}
	}
	return ""
}

// naming suggests what to do about a struct that embeds a type that encodes itself.
func naming(t reflect.Type) string {
	if t.Name() == "" {
		return "give the field a name"
	}
	return adviceOn(t, "give the field a name, or give "+t.Name()+" GobEncode and GobDecode")
}
