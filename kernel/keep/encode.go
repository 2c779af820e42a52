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
	fields, err := fieldsOf(name, value.Type())
	if err == nil {
		err = check(value, name)
	}
	if err != nil {
		return err
	}
	box, e := newBox(value.Type()), gob.NewEncoder(w)
	box.Elem().Field(0).Set(value)
	if err := e.EncodeValue(box); err != nil {
		return gobError(err)
	}
	if len(fields) > 0 {
		return e.Encode(strings.Join(fields, " "))
	}
	return nil
}

// usesGob reports whether values of a type are encoded by encoding/gob.
func usesGob(t reflect.Type) bool {
	_, hasCodec := codecs[t]
	_, numbers := isNumbers(t)
	return !hasCodec && !numbers
}

// decode reads a value of a type from the rest of a file, and the fields that gob has saved.
func decode(f *os.File, t reflect.Type) (value reflect.Value, fields []string, err error) {
	defer catch(&err, "decoding the kept value")
	info, err := f.Stat()
	if err != nil {
		return reflect.Zero(t), nil, err
	}
	size := info.Size() - rundir.KeptHeader
	if c, ok := codecs[t]; ok {
		if size == 0 {
			return reflect.Zero(t), nil, nil
		}
		value, err = c.load(f, size)
		return value, nil, err
	}
	if text, ok := isNumbers(t); ok {
		if err := readType(f, text); err != nil {
			return reflect.Zero(t), nil, err
		}
		left := size - int64(len(text))
		value, err = readNumbers(f, t, &left)
		return value, nil, err
	}
	return decodeGob(f, t)
}

func decodeGob(r io.Reader, t reflect.Type) (value reflect.Value, fields []string, err error) {
	// gob doesn't touch fields that are zero, so it gets a new value instead of the initial one.
	box, d := newBox(t), gob.NewDecoder(bufio.NewReaderSize(r, 1<<20))
	if err = d.DecodeValue(box); err == nil {
		var text string
		_ = d.Decode(&text) // There may be no list, and a damaged one costs only a warning.
		fields = strings.Fields(text)
	}
	return box.Elem().Field(0), fields, err
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
