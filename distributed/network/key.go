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

// Key is known to the processes of one job only. It never goes over a connection that it opens.
type Key []byte

// NewKey makes a key that nobody can guess.
func NewKey() Key {
	k := make(Key, 32)
	rand.Read(k) // It never fails.
	return k
}

// For is a key made of this one for one use: who has it knows no other.
func (k Key) For(use string) Key { return k.sign(use, nil) }

const nonceSize = 32

// peerTime is how long one that has connected may take to prove that it knows the key. It is long,
// since a busy machine delays an honest peer.
const peerTime = 15 * time.Second

// ErrStranger says that the other side does not know the key.
var ErrStranger = errors.New("who is there does not belong to this job")

func (k Key) sign(word string, nonce []byte) []byte {
	mac := hmac.New(sha256.New, k)
	io.WriteString(mac, word)
	mac.Write(nonce)
	return mac.Sum(nil)
}

// Prove is the calling side of the handshake: both sides show that they know the key. It sets and
// removes the connection's deadline.
func (k Key) Prove(conn net.Conn) error { return k.handshake(conn, "caller", "listener") }

// Check is the listening side.
func (k Key) Check(conn net.Conn) error { return k.handshake(conn, "listener", "caller") }

// handshake answers the other side's nonce and checks its answer to this one's. Each side has its
// own word, so that none can echo the other's.
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
