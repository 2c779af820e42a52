package tarset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// The head of an array, such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. The
// number in the type is the size of a value.
var (
	arrayType  = regexp.MustCompile(`'descr'\s*:\s*'[<>|=]?[biufc](\d+)'`)
	arrayShape = regexp.MustCompile(`'shape'\s*:\s*\(([\d,\s]*)\)`)
)

// checkArray refuses an array, as numpy.save writes it, whose values are not just the rest of the
// content: too few of them, or so many that they don't fit into memory. It lets through what it
// can't read.
func checkArray(content []byte) error {
	head, values, ok := cutHead(content)
	if !ok {
		return nil
	}
	size, shape := arrayType.FindSubmatch(head), arrayShape.FindSubmatch(head)
	if size == nil || shape == nil {
		return nil
	}
	want, err := arraySize(string(size[1]), string(shape[1]))
	if err != nil {
		return fmt.Errorf("an array of shape (%s): %w: the file is damaged", shape[1], err)
	}
	if got := uint64(len(values)); got != want {
		return fmt.Errorf("an array of shape (%s) with values of %s bytes has %d bytes instead of %d: it is truncated or damaged", shape[1], size[1], got, want)
	}
	return nil
}

// cutHead returns the head of an array, and the bytes after it.
func cutHead(content []byte) (head, values []byte, ok bool) {
	rest, ok := bytes.CutPrefix(content, []byte("\x93NUMPY"))
	if !ok || len(rest) < 6 {
		return nil, nil, false
	}
	size, begin := uint64(binary.LittleEndian.Uint16(rest[2:])), uint64(4)
	if rest[0] > 1 {
		size, begin = uint64(binary.LittleEndian.Uint32(rest[2:])), 6
	}
	if begin+size > uint64(len(rest)) {
		return nil, nil, false
	}
	return rest[begin : begin+size], rest[begin+size:], true
}

// arraySize returns the bytes of an array.
func arraySize(value, shape string) (uint64, error) {
	size, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return 0, err
	}
	for dimension := range strings.SplitSeq(shape, ",") {
		if dimension = strings.TrimSpace(dimension); dimension == "" {
			continue
		}
		n, err := strconv.ParseUint(dimension, 10, 64)
		if err != nil {
			return 0, err
		}
		high, low := bits.Mul64(size, n)
		if high != 0 {
			return 0, errors.New("that is larger than any memory")
		}
		size = low
	}
	return size, nil
}
