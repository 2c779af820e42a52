package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The bits of a frame's first byte.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// mostFrames is the maximum number of frames in a message.
const mostFrames = 10_000

// errMalformed means that the bytes are not ZMTP.
var errMalformed = errors.New("malformed")

// frame is a part of a message, or a command.
type frame struct {
	more, command bool
	body          []byte
}

// readFrame reads a frame whose body has at most limit bytes.
func readFrame(r *bufio.Reader, limit int64) (frame, error) {
	flags, err := r.ReadByte()
	if err != nil {
		return frame{}, err
	}
	f := frame{more: flags&flagMore != 0, command: flags&flagCommand != 0}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || f.more && f.command {
		return f, fmt.Errorf("%w frame: flags %#x", errMalformed, flags)
	}
	size, err := readSize(r, flags&flagLong != 0)
	if err != nil {
		return f, err
	}
	if size > uint64(limit) {
		return f, fmt.Errorf("a frame of %d bytes: at most %d are accepted", size, limit)
	}
	f.body, err = readBody(r, int64(size))
	return f, err
}

func readSize(r *bufio.Reader, long bool) (uint64, error) {
	if !long {
		size, err := r.ReadByte()
		return uint64(size), err
	}
	var size [8]byte
	_, err := io.ReadFull(r, size[:])
	return binary.BigEndian.Uint64(size[:]), err
}

// readBody allocates memory for a large body as it arrives: the size is only a stranger's claim.
func readBody(r io.Reader, size int64) ([]byte, error) {
	const large = 64 << 10
	if size <= large {
		body := make([]byte, size)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	var body bytes.Buffer
	_, err := io.CopyN(&body, r, size)
	return body.Bytes(), err
}

// encode returns the bytes of a message. Several connections may share them.
func encode(frames [][]byte) []byte {
	size := 0
	for _, body := range frames {
		size += longHeader + len(body)
	}
	text := make([]byte, 0, size)
	for i, body := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		text = appendFrame(text, flags, body)
	}
	return text
}

// longHeader is the length of the longest header of a frame.
const longHeader = 1 + 8

func appendFrame(text []byte, flags byte, body []byte) []byte {
	if len(body) <= 255 {
		text = append(text, flags, byte(len(body)))
	} else {
		text = binary.BigEndian.AppendUint64(append(text, flags|flagLong), uint64(len(body)))
	}
	return append(text, body...)
}

// encodeCommand returns the bytes of a command, whose name is part of its body.
func encodeCommand(name string, data []byte) []byte {
	return appendFrame(nil, flagCommand, append(append([]byte{byte(len(name))}, name...), data...))
}

// command splits the body of a command into its name and its data.
func command(body []byte) (name string, data []byte, err error) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, fmt.Errorf("%w command", errMalformed)
	}
	end := 1 + int(body[0])
	return string(body[1:end]), body[end:], nil
}
