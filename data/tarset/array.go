package tarset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"regexp"
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
	rest, ok := bytes.CutPrefix(content, []byte("\x93NUMPY"))
	if !ok || len(rest) < 6 {
		return nil
	}
	begin, size := 4, uint32(binary.LittleEndian.Uint16(rest[2:]))
	if rest[0] > 1 {
		begin, size = 6, binary.LittleEndian.Uint32(rest[2:])
	}
	if rest = rest[begin:]; uint64(size) > uint64(len(rest)) {
		return nil
	}
	value, shape := arrayType.FindSubmatch(rest[:size]), arrayShape.FindSubmatch(rest[:size])
	if value == nil || shape == nil {
		return nil
	}
	want := big.NewInt(1) // The shape of a damaged file may be larger than any memory.
	for _, number := range append(strings.Fields(strings.ReplaceAll(string(shape[1]), ",", " ")), string(value[1])) {
		n, _ := new(big.Int).SetString(number, 10)
		want.Mul(want, n)
	}
	if got := int64(len(rest)) - int64(size); want.Cmp(big.NewInt(got)) != 0 {
		return fmt.Errorf("an array of shape (%s) with values of %s bytes has %d bytes instead of %d: it is truncated or damaged", shape[1], value[1], got, want)
	}
	return nil
}
