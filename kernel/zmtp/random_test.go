package zmtp

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// TestRandomBytes randomly changes, cuts off and repeats bytes of a client's messages. In any case,
// a well-behaved client is served, and everything ends.
func TestRandomBytes(t *testing.T) {
	const seeds = 400
	b := newBed(t, "tcp", Options{Handshake: time.Second, Part: time.Second, Message: 1 << 20})
	go b.answer()
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := []*server{b.router.server, b.pub.server}[random.IntN(2)]
		bad := b.dial(s)
		go func() {
			_, _ = bad.Write(spoil(random, conversation(random)))
			_ = bad.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, bad) }()
		if seed%10 == 0 {
			b.served(b.router.server, "DEALER")
			b.served(b.router.server, "REQ")
		}
	}
	b.subscribe("x")
}

// conversation returns bytes that a client may send.
func conversation(random *rand.Rand) []byte {
	said := greetingOf("NULL", 3)
	socketType := []string{"DEALER", "SUB", "REQ"}[random.IntN(3)]
	ready := append(property("Socket-Type", socketType), property("Identity", "me")...)
	said = append(said, encodeCommand("READY", ready)...)
	for range random.IntN(5) {
		switch random.IntN(3) {
		case 0:
			said = append(said, encodeCommand("PING", []byte{0, 9, 'c'})...)
		case 1:
			said = append(said, encode([][]byte{{subscribe, 'x'}})...)
		default:
			said = append(said, encode([][]byte{nil, []byte("y"), make([]byte, random.IntN(70_000))})...)
		}
	}
	return said
}

// spoil changes a string as a broken or hostile client might.
func spoil(random *rand.Rand, text []byte) []byte {
	for range random.IntN(4) {
		at := random.IntN(len(text))
		switch random.IntN(4) {
		case 0:
			text[at] ^= byte(1 << random.IntN(8))
		case 1:
			text[at] = byte(random.IntN(256))
		case 2:
			text = text[:max(at, 1)]
		case 3:
			text = append(bytes.Clone(text[:at]), text[at/2:]...)
		}
	}
	return text
}
