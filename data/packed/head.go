package packed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"gonbatch/internal/plural"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// A file has a head, a record of the same size for each example, and a checksum of each record.
//
//	gonbatch packed 1 3e4f5a6b     the format's version, and the CRC-32C of the next line
//	{"byte_order":"little",...}    the head, as JSON; then zeros up to a multiple of 4096
//	records                        the values of the inputs, then of the labels
//	checksums                      the CRC-32C of each record, 4 bytes each

const (
	magic = "gonbatch packed "
	// version changes with the format.
	version = "1"
	// page is the unit of the head's size.
	page = 4096
	// mostHead limits the head of a damaged file.
	mostHead = 64 << 20
	// byteOrder is that of the numbers in a file, and of all machines that XLA supports.
	byteOrder = "little"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head says what the examples of a file are.
type head struct {
	ByteOrder string   `json:"byte_order"`
	Name      string   `json:"name"`             // Of the dataset.
	Source    string   `json:"source,omitempty"` // What its examples were made from; see data.Fingerprinted.
	Examples  int      `json:"examples"`
	Inputs    []column `json:"inputs"`
	Labels    []column `json:"labels,omitempty"`
	Classes   []string `json:"classes,omitempty"`
}

// column is an input or a label.
type column struct {
	Type  string `json:"type"`
	Shape []int  `json:"shape"` // Without the axis of the batch.
	// Bytes says that the float32 values from 0 to 1 are stored as bytes from 0 to 255.
	Bytes bool `json:"bytes,omitempty"`
}

// of is the shape of n examples.
func (c column) of(n int) shapes.Shape {
	return shapes.Make(dtypes.MapOfNames[c.Type], append([]int{n}, c.Shape...)...)
}

// stored is the number of bytes of an example in a file.
func (c column) stored() int {
	if one := c.of(1); !c.Bytes {
		return one.Size() * one.DType.Bits() / 8
	}
	return c.of(1).Size()
}

// columns are the inputs, then the labels.
func (h head) columns() []column { return slices.Concat(h.Inputs, h.Labels) }

// record is the size of a record.
func (h head) record() (size int64) {
	for _, c := range h.columns() {
		size += int64(c.stored())
	}
	return size
}

// text returns the beginning of a file.
func (h head) text() ([]byte, error) {
	line, err := json.Marshal(h)
	text := fmt.Appendf(nil, "%s%s %08x\n%s\n", magic, version, crc32.Checksum(line, castagnoli), line)
	return append(text, make([]byte, (page-len(text)%page)%page)...), err
}

// size is that of a file whose text has so many bytes.
func (h head) size(text int) int64 {
	return int64(text) + int64(h.Examples)*(h.record()+crc32.Size)
}

// check refuses a head that no file can have: a shape of it would panic, or its size overflow.
func (h head) check() error {
	if h.Examples < 1 || len(h.Inputs) == 0 {
		return fmt.Errorf("%s with %s", plural.Of(h.Examples, "example"), plural.Of(len(h.Inputs), "input"))
	}
	record := 0
	for _, c := range h.columns() {
		dtype, known := dtypes.MapOfNames[c.Type]
		n := 1
		if !known || dtype == dtypes.InvalidDType || dtype.Bits() == 0 || dtype.Bits()%8 != 0 || c.Bytes && dtype != dtypes.Float32 {
			return fmt.Errorf("a column of type %q", c.Type)
		}
		for _, d := range c.Shape {
			if d < 0 || d > 0 && n > math.MaxInt32/d {
				return fmt.Errorf("a column of shape %v", c.Shape)
			}
			n *= d
		}
		record += n * dtype.Bits() / 8
	}
	if record < 1 || record > math.MaxInt64/h.Examples/2 {
		return fmt.Errorf("%s of %d bytes", plural.Of(h.Examples, "example"), record)
	}
	return nil
}

// readHead reads the head of a file with so many bytes, and how long its text is.
func readHead(file io.ReaderAt, bytesOfFile int64) (h head, text int, err error) {
	r := bufio.NewReader(io.NewSectionReader(file, 0, min(bytesOfFile, mostHead)))
	begin := make([]byte, len(magic))
	if n, err := io.ReadFull(r, begin); string(begin[:n]) != magic {
		return h, 0, errors.Join(errors.New("it was not written by package packed"), err)
	}
	first, err := r.ReadString('\n')
	fileVersion, sum, _ := strings.Cut(strings.TrimSuffix(first, "\n"), " ")
	if err != nil || fileVersion != version {
		return h, 0, fmt.Errorf("its format is version %q, and this gonbatch reads version %s: remove it and write it again", fileVersion, version)
	}
	line, err := r.ReadBytes('\n')
	line = bytes.TrimSuffix(line, []byte("\n"))
	if err != nil || sum != fmt.Sprintf("%08x", crc32.Checksum(line, castagnoli)) {
		return h, 0, errors.New("its head is damaged: copy it again, or remove it and write it again")
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, 0, fmt.Errorf("its head is damaged: %w", err)
	}
	if h.ByteOrder != byteOrder {
		return h, 0, fmt.Errorf("its byte order is %q: only %q can be read: write it again on a machine with this byte order", h.ByteOrder, byteOrder)
	}
	if err := h.check(); err != nil {
		return h, 0, fmt.Errorf("its head is damaged: %w", err)
	}
	whole, err := h.text()
	if want := h.size(len(whole)); err == nil && bytesOfFile != want {
		err = fmt.Errorf("it has %d bytes instead of %d: it is truncated or damaged: copy it again, or remove it and write it again", bytesOfFile, want)
	}
	return h, len(whole), err
}
