package kernel

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

// TestCopyCharacters writes strings in random pieces. A reader of the copy sees whole characters in
// each read, and all of them.
func TestCopyCharacters(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		var text []byte
		for range random.IntN(100_000) {
			text = utf8.AppendRune(text, []rune("aä名𝄞")[random.IntN(4)])
		}
		source, in := pipe(t)
		out, target := pipe(t)
		go func() {
			for rest := text; len(rest) > 0; {
				n := min(1+random.IntN(40_000), len(rest))
				_, _ = in.Write(rest[:n])
				rest = rest[n:]
			}
			_ = in.Close()
		}()
		go func() {
			copyCharacters(target, source, newPace(""))
			_ = target.Close()
		}()
		var got []byte
		for buffer := make([]byte, streamPiece); ; {
			n, err := out.Read(buffer)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !utf8.Valid(buffer[:n]) {
				t.Fatalf("seed %d: a piece of %d bytes at %d is no whole text", seed, n, len(got))
			}
			got = append(got, buffer[:n]...)
		}
		if !bytes.Equal(got, text) {
			t.Fatalf("seed %d: %d bytes came, want %d", seed, len(got), len(text))
		}
	}
}

// TestPace: a command waits while too much output is on its way, and continues when it has been
// passed on.
func TestPace(t *testing.T) {
	var passed atomic.Uint64
	passed.Store(1000) // of earlier commands
	p := &pace{passed: func() (uint64, error) { return passed.Load(), nil }, limit: 100, base: 1000}
	var sent atomic.Uint64
	go func() {
		for range 100 {
			p.wait(10)
			sent.Add(10)
		}
	}()
	for passed.Load() < 1900 {
		want := passed.Load() - 1000 + 100
		for deadline := time.Now().Add(5 * time.Minute); sent.Load() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) || sent.Load() > want {
				t.Fatalf("%d bytes are sent, want %d", sent.Load(), want)
			}
		}
		passed.Add(50)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

// TestWholeCharacters: invalid bytes are not held back.
func TestWholeCharacters(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "ä": 2, "a\xc3": 1, "名"[:2]: 0, "x𝄞"[:4]: 1, "\xff\xff": 2, "a\x80\x80\x80\x80": 5} {
		if got := wholeCharacters([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
