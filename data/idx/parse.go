package idx

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// unsignedByte is the code for elements of one unsigned byte, the only ones that MNIST and its
// successors have.
const unsignedByte = 0x08

// parse parses an IDX file of bytes: two zeros, the element type, the number of axes, the size
// of each axis as a big-endian uint32, and the elements. The values are a slice of content, not a
// copy.
func parse(content []byte, rank int) (size []int, values []uint8, err error) {
	if len(content) < 4 {
		return nil, nil, fmt.Errorf("not an IDX file: %d bytes; the header alone has 4", len(content))
	}
	switch {
	case content[0] == 0x1f && content[1] == 0x8b:
		return nil, nil, errors.New("not an IDX file but a gzip file; decompress it with gunzip")
	case content[0] != 0 || content[1] != 0:
		return nil, nil, fmt.Errorf("not an IDX file: it begins with % x, not 00 00", content[:2])
	case content[2] != unsignedByte:
		return nil, nil, fmt.Errorf("elements of type 0x%02x; only 0x%02x, unsigned bytes, is supported", content[2], unsignedByte)
	case int(content[3]) != rank:
		return nil, nil, fmt.Errorf("%d axes; expected %d", content[3], rank)
	}
	head, values := content[4:], []uint8(nil)
	if len(head) < 4*rank {
		return nil, nil, fmt.Errorf("truncated: it ends within the sizes of its %d axes", rank)
	}
	want := uint64(1)
	for axis := range rank {
		n := binary.BigEndian.Uint32(head[4*axis:])
		if n == 0 {
			return nil, nil, fmt.Errorf("empty: axis %d has size 0", axis)
		}
		size = append(size, int(n))
		if want *= uint64(n); want > 1<<40 {
			return nil, nil, fmt.Errorf("sizes %v make no sense", size)
		}
	}
	values = head[4*rank:]
	switch got := uint64(len(values)); {
	case got < want:
		return nil, nil, fmt.Errorf("truncated: %d of %d elements", got, want)
	case got > want:
		return nil, nil, fmt.Errorf("%d bytes follow the last of %d elements", got-want, want)
	}
	return size, values, nil
}
