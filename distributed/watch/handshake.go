package watch

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"time"
)

// key is known to the ranks of one job only. It never goes over a connection of the watch.
type key []byte

func newKey() key {
	k := make(key, 32)
	rand.Read(k) // It never fails.
	return k
}

const (
	nonceSize        = 32
	handshakeTimeout = 5 * time.Second
)

var errStranger = errors.New("who is there does not belong to this job")

// answer is what only one who knows the key can say to a nonce. Each side has its own word, so that none can echo the other's.
func (k key) answer(side string, nonce []byte) []byte {
	mac := hmac.New(sha256.New, k)
	io.WriteString(mac, side)
	mac.Write(nonce)
	return mac.Sum(nil)
}

// prove is the calling side of the handshake: both sides show that they know the key.
func (k key) prove(conn net.Conn) error { return k.handshake(conn, "rank", "hub") }

// check is the listening side.
func (k key) check(conn net.Conn) error { return k.handshake(conn, "hub", "rank") }

func (k key) handshake(conn net.Conn, mine, theirs string) error {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	defer conn.SetDeadline(time.Time{})
	nonce := make([]byte, nonceSize)
	rand.Read(nonce)
	if _, err := conn.Write(nonce); err != nil {
		return err
	}
	asked := make([]byte, nonceSize)
	if _, err := io.ReadFull(conn, asked); err != nil {
		return err
	}
	if _, err := conn.Write(k.answer(mine, asked)); err != nil {
		return err
	}
	answered := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, answered); err != nil {
		return err
	}
	if !hmac.Equal(answered, k.answer(theirs, nonce)) {
		return errStranger
	}
	return nil
}
