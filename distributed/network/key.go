package network

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"time"
)

// Key is known only to the processes of one job. It is never sent over a connection that it
// authenticates.
type Key []byte

// NewKey returns a random key.
func NewKey() Key {
	k := make(Key, 32)
	rand.Read(k) // It never fails.
	return k
}

// For derives a key for one use from this one. It reveals neither this key nor those for other
// uses.
func (k Key) For(use string) Key { return k.sign(use, nil) }

const nonceSize = 32

// peerTime is how long a new connection may take to prove that it knows the key. It is long,
// because a busy machine may delay an honest peer.
const peerTime = 15 * time.Second

// ErrStranger means that the other side does not know the key.
var ErrStranger = errors.New("the other side does not belong to this job")

func (k Key) sign(word string, nonce []byte) []byte {
	mac := hmac.New(sha256.New, k)
	io.WriteString(mac, word)
	mac.Write(nonce)
	return mac.Sum(nil)
}

// Prove is the calling side's part of the handshake, in which both sides prove that they know the
// key. It sets and removes the connection's deadline.
func (k Key) Prove(conn net.Conn) error { return k.handshake(conn, "caller", "listener") }

// Check is the listening side's part of the handshake.
func (k Key) Check(conn net.Conn) error { return k.handshake(conn, "listener", "caller") }

// handshake answers the other side's nonce and checks the answer to its own. Each side signs a
// different word, so that neither can echo the other's answer.
func (k Key) handshake(conn net.Conn, mine, theirs string) error {
	conn.SetDeadline(time.Now().Add(peerTime))
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
	if _, err := conn.Write(k.sign(mine, asked)); err != nil {
		return err
	}
	answered := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, answered); err != nil {
		return err
	}
	if !hmac.Equal(answered, k.sign(theirs, nonce)) {
		return ErrStranger
	}
	return nil
}
