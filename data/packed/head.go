package packed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"gonbatch/internal/plural"
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
	// byteOrder is that of the numbers in a file.
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

// columns are the inputs, then the labels.
func (h head) columns() []column { return append(h.Inputs[:len(h.Inputs):len(h.Inputs)], h.Labels...) }

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
	if err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, "%s%s %08x\n%s\n", magic, version, crc32.Checksum(line, castagnoli), line)
	return append(text, make([]byte, (page-len(text)%page)%page)...), nil
}

// size is that of a file whose text has so many bytes.
func (h head) size(text int) int64 {
	return int64(text) + int64(h.Examples)*(h.record()+crc32.Size)
}

// readHead reads the head of a file with so many bytes, and how long its text is.
func readHead(file io.ReaderAt, bytesOfFile int64) (h head, text int, err error) {
	line, err := headLine(io.NewSectionReader(file, 0, min(bytesOfFile, mostHead)))
	if err != nil {
		return head{}, 0, err
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return head{}, 0, fmt.Errorf("its head is damaged: %w", err)
	}
	if h.ByteOrder != byteOrder {
		return head{}, 0, fmt.Errorf("its byte order is %q: only %q can be read: write it again on a machine with this byte order", h.ByteOrder, byteOrder)
	}
	if err := h.check(); err != nil {
		return head{}, 0, fmt.Errorf("its head is damaged: %w", err)
	}
	begin, err := h.text()
	if err != nil {
		return head{}, 0, err
	}
	if want := h.size(len(begin)); bytesOfFile != want {
		return head{}, 0, fmt.Errorf("it has %d bytes instead of %d: it is truncated or damaged: copy it again, or remove it and write it again", bytesOfFile, want)
	}
	return h, len(begin), nil
}

// headLine reads the JSON of a head, and compares its checksum.
func headLine(file *io.SectionReader) ([]byte, error) {
	begin := make([]byte, min(file.Size(), mostHead))
	if n := int64(page); int64(len(begin)) > n { // Most heads are short.
		begin = begin[:n]
	}
	if _, err := io.ReadFull(file, begin); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(begin, []byte(magic)) {
		return nil, errors.New("it was not written by package packed")
	}
	first, rest, found := bytes.Cut(begin[len(magic):], []byte("\n"))
	fileVersion, sum, _ := bytes.Cut(first, []byte(" "))
	if !found || string(fileVersion) != version {
		return nil, fmt.Errorf("its format is version %q, and this gonbatch reads version %s: remove it and write it again", fileVersion, version)
	}
	line, _, found := bytes.Cut(rest, []byte("\n"))
	if !found { // A long head, such as one with many classes.
		more, err := io.ReadAll(file)
		if err != nil {
			return nil, err
		}
		line, _, _ = bytes.Cut(append(rest, more...), []byte("\n"))
	}
	if string(sum) != fmt.Sprintf("%08x", crc32.Checksum(line, castagnoli)) {
		return nil, errors.New("its head is damaged: copy it again, or remove it and write it again")
	}
	return line, nil
}

// check refuses a head that no file can have.
func (h head) check() error {
	if h.Examples < 1 || len(h.Inputs) == 0 {
		return fmt.Errorf("%s with %s", plural.Of(h.Examples, "example"), plural.Of(len(h.Inputs), "input"))
	}
	for _, c := range h.columns() {
		if err := c.check(); err != nil {
			return err
		}
	}
	if record := h.record(); record < 1 || record > math.MaxInt64/int64(h.Examples)/2 {
		return fmt.Errorf("%s of %d bytes", plural.Of(h.Examples, "example"), record)
	}
	return nil
}
