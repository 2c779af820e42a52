package tarset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/numpy"
	"github.com/pkg/errors"

	"gonbatch/data"
)

// Field returns a tensor of a sample, without the axis of the batch. It has the same shape for all
// samples, and is new: the set frees it. A field is called concurrently, and must give the same
// tensor each time.
type Field func(s *Sample) (*tensors.Tensor, error)

// call makes an error of a panic, which would otherwise end the program.
func (f Field) call(s *Sample) (t *tensors.Tensor, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = errors.Errorf("panic: %v", value) // With its place, for %+v.
		}
	}()
	t, err = f(s)
	if err == nil && (t == nil || !t.Ok()) {
		err = errors.New("the field has returned no tensor")
	}
	return t, err
}

// Image decodes an image to [height, width, 1 or 3] float32. Default extensions: jpg, jpeg, png and
// gif, whichever the sample has.
func Image(d data.ImageDecoder, extensions ...string) Field {
	if len(extensions) == 0 {
		extensions = []string{"jpg", "jpeg", "png", "gif"}
	}
	return decoded(extensions, func(content []byte) (*tensors.Tensor, error) {
		if d.Height < 1 || d.Width < 1 {
			return nil, fmt.Errorf("tarset.Image: set Height and Width, got %d and %d", d.Height, d.Width)
		}
		pixels := make([]float32, d.Height*d.Width*d.Channels())
		if err := d.Decode(pixels, bytes.NewReader(content)); err != nil {
			return nil, err
		}
		return tensors.FromFlatDataAndDimensions(pixels, d.Height, d.Width, d.Channels()), nil
	})
}

// Class reads the number of a class, from 0, to [1] int32. Default extension: cls.
func Class(extensions ...string) Field {
	if len(extensions) == 0 {
		extensions = []string{"cls"}
	}
	return decoded(extensions, func(content []byte) (*tensors.Tensor, error) {
		class, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 32)
		if err != nil || class < 0 {
			return nil, fmt.Errorf("%.40q is not the number of a class: it must be a whole number of at least 0", content)
		}
		return tensors.FromFlatDataAndDimensions([]int32{int32(class)}, 1), nil
	})
}

// NumPy reads an array as numpy.save writes it. Default extension: npy.
func NumPy(extensions ...string) Field {
	if len(extensions) == 0 {
		extensions = []string{"npy"}
	}
	return decoded(extensions, func(content []byte) (*tensors.Tensor, error) {
		if err := checkArray(content); err != nil {
			return nil, err
		}
		return numpy.FromNpyReader(bytes.NewReader(content))
	})
}

// JSON reads numbers of an object by their names, to [len(names)] float32. Default extension: json.
func JSON(extension string, names ...string) Field {
	return decoded([]string{cmp.Or(extension, "json")}, func(content []byte) (*tensors.Tensor, error) {
		var object map[string]any
		if err := json.Unmarshal(content, &object); err != nil {
			return nil, err
		}
		values := make([]float32, len(names))
		for i, name := range names {
			number, ok := object[name].(float64)
			if !ok || math.Abs(number) > math.MaxFloat32 {
				return nil, fmt.Errorf("%q is %v: it must be a number that fits into a float32", name, object[name])
			}
			values[i] = float32(number)
		}
		return tensors.FromFlatDataAndDimensions(values, len(values)), nil
	})
}

// decoded is a field of one member.
func decoded(extensions []string, decode func([]byte) (*tensors.Tensor, error)) Field {
	return func(s *Sample) (*tensors.Tensor, error) {
		extension, content, err := s.find(extensions)
		if err != nil {
			return nil, err
		}
		t, err := decode(content)
		if err != nil {
			return nil, fmt.Errorf(".%s: %w", extension, err)
		}
		return t, nil
	}
}
