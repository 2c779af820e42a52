package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
)

const (
	greetingSize = 64
	// mostMetadata is the maximum size of the command with which a client introduces itself.
	mostMetadata = 16 << 10
	// mostIdentity is the maximum length of an identity in the protocol.
	mostIdentity = 255
)

// mechanism is the protocol's name for no encryption: a Jupyter kernel signs its messages instead.
var mechanism = append([]byte("NULL"), make([]byte, 16)...)

// peers maps a type of socket to the types that may connect to it.
var peers = map[string][]string{
	"ROUTER": {"DEALER", "REQ", "ROUTER"},
	"PUB":    {"SUB", "XSUB"},
}

// handshake greets a client, and returns its identity, which is empty if it has none.
func handshake(c net.Conn, in *bufio.Reader, socketType string) (identity string, err error) {
	if err := greet(c, in); err != nil {
		return "", fmt.Errorf("greeting: %w", err)
	}
	ready := property("Socket-Type", socketType)
	if socketType == "ROUTER" {
		ready = append(ready, property("Identity", "")...)
	}
	if _, err := c.Write(encodeCommand("READY", ready)); err != nil {
		return "", err
	}
	f, err := readFrame(in, mostMetadata)
	if err != nil {
		return "", fmt.Errorf("handshake: %w", err)
	}
	if identity, err = readReady(f, socketType); err != nil {
		reason := err.Error()[:min(len(err.Error()), 255)]
		_, _ = c.Write(encodeCommand("ERROR", append([]byte{byte(len(reason))}, reason...)))
		return "", fmt.Errorf("handshake: %w", err)
	}
	return identity, nil
}

// greet exchanges greetings. It sends its own first, because clients wait for it.
func greet(c net.Conn, in io.Reader) error {
	greeting := make([]byte, greetingSize)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], mechanism)
	if _, err := c.Write(greeting); err != nil {
		return err
	}
	theirs := make([]byte, greetingSize)
	if _, err := io.ReadFull(in, theirs[:1]); err != nil {
		return err
	}
	if theirs[0] != 0xff {
		return fmt.Errorf("%w: begins with %#x, so the client does not speak ZMTP 3", errMalformed, theirs[0])
	}
	if _, err := io.ReadFull(in, theirs[1:]); err != nil {
		return err
	}
	switch {
	case theirs[9] != 0x7f || theirs[10] < 3:
		return fmt.Errorf("%w: signature %#x, version %d: want 0x7f, 3", errMalformed, theirs[9], theirs[10])
	case !bytes.Equal(theirs[12:32], mechanism):
		return fmt.Errorf("mechanism %q: only NULL is supported", bytes.TrimRight(theirs[12:32], "\x00"))
	}
	return nil
}

// readReady reads the command with which a client introduces itself, and returns the client's
// identity.
func readReady(f frame, socketType string) (identity string, err error) {
	name, data, err := command(f.body)
	if err != nil || !f.command || name != "READY" {
		return "", errors.Join(err, fmt.Errorf("%w: want the command READY", errMalformed))
	}
	properties, err := readProperties(data)
	if err != nil {
		return "", err
	}
	if peer := properties["socket-type"]; !slices.Contains(peers[socketType], peer) {
		return "", fmt.Errorf("a socket of type %q can't connect to %s", peer, socketType)
	}
	identity = properties["identity"]
	// The names that a Router assigns begin with a zero byte.
	if len(identity) > mostIdentity || strings.HasPrefix(identity, "\x00") {
		return "", fmt.Errorf("identity %q: want at most %d bytes, of which the first is not zero", identity, mostIdentity)
	}
	return identity, nil
}

func property(name, value string) []byte {
	text := append([]byte{byte(len(name))}, name...)
	text = binary.BigEndian.AppendUint32(text, uint32(len(value)))
	return append(text, value...)
}

// readProperties returns properties by their names in lower case.
func readProperties(data []byte) (map[string]string, error) {
	properties := map[string]string{}
	for len(data) > 0 {
		end := 1 + int(data[0])
		if len(data) < end+4 {
			return nil, fmt.Errorf("%w property", errMalformed)
		}
		size := int64(binary.BigEndian.Uint32(data[end:]))
		value := data[end+4:]
		if int64(len(value)) < size {
			return nil, fmt.Errorf("%w property", errMalformed)
		}
		properties[strings.ToLower(string(data[1:end]))] = string(value[:size])
		data = value[size:]
	}
	return properties, nil
}
