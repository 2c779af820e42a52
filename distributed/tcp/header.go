package tcp

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// intent is what the ranks must agree about in a collective: each begins by telling another what it
// intends.
type intent struct {
	kind      int // With the numbers of a transport.
	reduction int
	dtype     int
	root      int
}

// headerSize is the size of an intent with the length of the data and the groups of the ranks.
const headerSize = 19

// header begins a collective: ranks that disagree about it fail instead of mixing up bytes.
func (t *team) header(i intent, length int) []byte {
	h := append(make([]byte, 0, headerSize), byte(i.kind), byte(i.reduction), byte(i.dtype))
	h = binary.LittleEndian.AppendUint32(h, uint32(i.root))
	h = binary.LittleEndian.AppendUint32(h, t.groups)
	return binary.LittleEndian.AppendUint64(h, uint64(length))
}

// checkHeader compares another rank's header with this rank's.
func checkHeader(mine, theirs []byte, rank int) error {
	if string(mine) == string(theirs) {
		return nil
	}
	return fmt.Errorf("rank %d calls %s here, and this rank %s: all ranks must call the same collective, in the same order", rank, described(theirs), described(mine))
}

// described describes a header for people, such as "all-reduce (minimum) of 24 bytes of float32".
func described(header []byte) string {
	name, ok := names[int(header[0])]
	if !ok {
		name = fmt.Sprintf("collective %d", header[0])
	}
	switch header[1] {
	case reduceMin:
		name += " (minimum)"
	case reduceMax:
		name += " (maximum)"
	}
	text := fmt.Sprintf("%s of %d bytes of %s", name, binary.LittleEndian.Uint64(header[11:]), typeName(int(header[2])))
	if root := binary.LittleEndian.Uint32(header[3:]); root != 0 {
		text += fmt.Sprintf(" from %d", root)
	}
	if groups := binary.LittleEndian.Uint32(header[7:]); groups != 0 {
		text += fmt.Sprintf(" in groups #%08x", groups)
	}
	return text
}

func typeName(dtype int) string {
	if name, ok := typeNames[dtype]; ok {
		return name
	}
	return fmt.Sprintf("type %d", dtype)
}

// checksum returns a number that differs for other groups, and is not 0.
func checksum(places string) uint32 { return max(1, crc32.ChecksumIEEE([]byte(places))) }

// agree compares what the previous member intends with what this rank does.
func (t *team) agree(i intent, length int) error {
	if t.size() == 1 {
		return nil
	}
	mine, theirs := t.header(i, length), make([]byte, headerSize)
	if err := t.pass(mine, theirs); err != nil {
		return err
	}
	return checkHeader(mine, theirs, t.from.rank)
}
