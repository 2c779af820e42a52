package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gonbatch/internal/plural"
)

// ErrSignature means that a message's signature is forged, or was received before.
var ErrSignature = errors.New("signature refused")

const (
	delimiter = "<IDS|MSG>"
	scheme    = "hmac-sha256"
	// remembered is the number of signatures kept to detect replays.
	remembered = 1 << 16
)

// Codec signs and checks the messages of one connection. Its methods may be called concurrently.
type Codec struct {
	key []byte

	mu   sync.Mutex
	seen map[string]bool
	ring []string
	next int
}

// NewCodec returns a codec for a connection file's signature_scheme and key. With an empty key
// nothing is signed or checked.
func NewCodec(signatureScheme, key string) (*Codec, error) {
	if key != "" && signatureScheme != scheme {
		return nil, fmt.Errorf("signature scheme %q: only %s is supported: don't change the client's Session.signature_scheme", signatureScheme, scheme)
	}
	return &Codec{key: []byte(key), seen: map[string]bool{}, ring: make([]string, remembered)}, nil
}

// Encode returns the frames of a message.
func (c *Codec) Encode(m *Message) [][]byte {
	frames := make([][]byte, 0, len(m.Identities)+6+len(m.Buffers))
	frames = append(frames, m.Identities...)
	parts := [][]byte{m.RawHeader, m.Parent, m.Metadata, m.Content}
	frames = append(frames, []byte(delimiter), c.sign(parts))
	frames = append(frames, parts...)
	return append(frames, m.Buffers...)
}

// Decode parses the frames of a message and checks its signature.
func (c *Codec) Decode(frames [][]byte) (*Message, error) {
	at := slices.IndexFunc(frames, func(frame []byte) bool { return string(frame) == delimiter })
	if at < 0 || len(frames) < at+6 {
		return nil, fmt.Errorf("malformed message: %s, want %s, a signature and 4 parts", plural.Of(len(frames), "frame"), delimiter)
	}
	signature, parts := frames[at+1], frames[at+2:at+6]
	if err := c.check(signature, parts); err != nil {
		return nil, err
	}
	m := &Message{
		Identities: frames[:at], RawHeader: parts[0], Parent: parts[1], Metadata: parts[2], Content: parts[3], Buffers: frames[at+6:],
	}
	return m, m.read()
}

func (m *Message) read() error {
	if err := json.Unmarshal(m.RawHeader, &m.Header); err != nil {
		return fmt.Errorf("malformed header: %w", err)
	}
	var parent struct {
		ID string `json:"msg_id"`
	}
	if err := json.Unmarshal(m.Parent, &parent); err != nil {
		return fmt.Errorf("%s: malformed parent header: %w", m.Header.Type, err)
	}
	m.ParentID = parent.ID
	if !json.Valid(m.Metadata) || !json.Valid(m.Content) {
		return fmt.Errorf("%s: metadata or content is not JSON", m.Header.Type)
	}
	return nil
}

func (c *Codec) sign(parts [][]byte) []byte {
	if len(c.key) == 0 {
		return nil
	}
	mac := hmac.New(sha256.New, c.key)
	mac.Write(bytes.Join(parts, nil))
	return hex.AppendEncode(nil, mac.Sum(nil))
}

func (c *Codec) check(signature []byte, parts [][]byte) error {
	if len(c.key) == 0 {
		return nil
	}
	if !hmac.Equal(c.sign(parts), signature) {
		return fmt.Errorf("%w: not made with this connection's key", ErrSignature)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text := string(signature)
	if c.seen[text] {
		return fmt.Errorf("%w: received twice", ErrSignature)
	}
	delete(c.seen, c.ring[c.next])
	c.ring[c.next], c.seen[text] = text, true
	c.next = (c.next + 1) % remembered
	return nil
}
