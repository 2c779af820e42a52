package keep

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"os"
	"reflect"
	"strings"

	"gonbatch/internal/rundir"
)

// codec encodes the values of one type in its own format.
type codec struct {
	save func(w io.Writer, value reflect.Value) error
	load func(r io.Reader, size int64) (reflect.Value, error)
}

var codecs = map[reflect.Type]codec{}

// Register makes variables of type T use these functions instead of encoding/gob. load gets the
// number of bytes that save wrote. Neither function is called for T's zero value.
// Call Register in an init function.
func Register[T any](save func(w io.Writer, value T) error, load func(r io.Reader, size int64) (T, error)) {
	codecs[reflect.TypeFor[T]()] = codec{
		save: func(w io.Writer, value reflect.Value) error { return save(w, value.Interface().(T)) },
		load: func(r io.Reader, size int64) (reflect.Value, error) {
			value, err := load(r, size)
			return reflect.ValueOf(&value).Elem(), err
		},
	}
}

// Images are often kept as an image.Image, and gob needs the concrete types that it can hold.
func init() {
	for _, value := range []any{
		&image.Alpha{}, &image.Alpha16{}, &image.CMYK{}, &image.Gray{}, &image.Gray16{}, &image.NRGBA{}, &image.NRGBA64{},
		&image.NYCbCrA{}, &image.Paletted{}, &image.RGBA{}, &image.RGBA64{}, &image.Uniform{}, &image.YCbCr{},
		color.Alpha{}, color.Alpha16{}, color.CMYK{}, color.Gray{}, color.Gray16{}, color.NRGBA{}, color.NRGBA64{},
		color.NYCbCrA{}, color.RGBA{}, color.RGBA64{}, color.YCbCr{},
	} {
		gob.Register(value)
	}
}

// encode writes the value of the variable called name. The zero value of a type with a codec is an
// empty file.
func encode(w io.Writer, name string, value reflect.Value) (err error) {
	defer catch(&err, "encoding it")
	if c, ok := codecs[value.Type()]; ok {
		if value.IsZero() {
			return nil
		}
		return c.save(w, value)
	}
	if text, ok := isNumbers(value.Type()); ok {
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		return writeNumbers(w, value)
	}
	if err := check(value, name); err != nil {
		return err
	}
	box := newBox(value.Type())
	box.Elem().Field(0).Set(value)
	if err := encodeBox(w, box); err != nil {
		return err
	}
	return writeFields(w, value.Type())
}

// encodeBox encodes a value with gob, which calls methods of the value's types.
func encodeBox(w io.Writer, box reflect.Value) (err error) {
	defer catch(&err, "encoding it")
	return gobError(gob.NewEncoder(w).EncodeValue(box))
}

// usesGob reports whether values of a type are encoded by encoding/gob.
func usesGob(t reflect.Type) bool {
	_, hasCodec := codecs[t]
	_, numbers := isNumbers(t)
	return !hasCodec && !numbers
}

// decode reads a value of a type from the rest of a file.
func decode(f *os.File, t reflect.Type) (value reflect.Value, err error) {
	defer catch(&err, "decoding the kept value")
	info, err := f.Stat()
	if err != nil {
		return reflect.Zero(t), err
	}
	size := info.Size() - rundir.KeptHeader
	if c, ok := codecs[t]; ok {
		if size == 0 {
			return reflect.Zero(t), nil
		}
		return c.load(f, size)
	}
	if text, ok := isNumbers(t); ok {
		if err := readType(f, text); err != nil {
			return reflect.Zero(t), err
		}
		left := size - int64(len(text))
		return readNumbers(f, t, &left)
	}
	// gob doesn't touch fields that are zero, so it gets a new value instead of the initial one.
	box := newBox(t)
	err = gob.NewDecoder(bufio.NewReaderSize(f, 1<<20)).DecodeValue(box)
	return box.Elem().Field(0), err
}

// errPanic is the panic of a method with which a type encodes or decodes itself.
type errPanic struct {
	during string
	value  any
}

func (e errPanic) Error() string { return fmt.Sprintf("%s panics: %v", e.during, e.value) }

// catch turns a panic of the function that defers it into the function's error.
func catch(err *error, during string) {
	if r := recover(); r != nil {
		*err = errPanic{during, r}
	}
}

// newBox returns a pointer to a struct with one field of the type: gob accepts nil only inside a
// struct.
func newBox(t reflect.Type) reflect.Value {
	return reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Value", Type: t}}))
}

// headerMark begins every file. The padded hash of the variable's declaration follows.
const headerMark = "gonbatch kept 2 "

func writeHeader(w io.Writer, hash string) error {
	_, err := fmt.Fprintf(w, "%s%-*.*s", headerMark, rundir.KeptHeader-len(headerMark), rundir.KeptHeader-len(headerMark), hash)
	return err
}

// readHeader returns the hash in a file's header.
func readHeader(r io.Reader) (hash string, err error) {
	header := make([]byte, rundir.KeptHeader)
	if _, err := io.ReadFull(r, header); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	rest, ok := strings.CutPrefix(string(header), headerMark)
	if !ok {
		return "", errors.New("the file with the kept value is damaged, or of another version of gonbatch")
	}
	return strings.TrimRight(rest, " "), nil
}
