package wire_test

import (
	"errors"
	"slices"
	"testing"

	"gonbatch/kernel/wire"
)

func codec(t testing.TB, key string) *wire.Codec {
	t.Helper()
	c, err := wire.NewCodec("hmac-sha256", key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRoundTrip(t *testing.T) {
	request, err := wire.New("execute_request", map[string]string{"code": "x"})
	if err != nil {
		t.Fatal(err)
	}
	request.Identities = [][]byte{[]byte("a"), []byte("b")}
	request.Buffers = [][]byte{{1, 2}}
	got, err := codec(t, "key").Decode(codec(t, "key").Encode(request))
	if err != nil {
		t.Fatal(err)
	}
	if got.Header != request.Header || string(got.Content) != `{"code":"x"}` || len(got.Identities) != 2 || len(got.Buffers) != 1 {
		t.Errorf("%+v, want %+v", got, request)
	}
	reply, err := got.Reply("execute_reply", map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err = codec(t, "key").Decode(codec(t, "key").Encode(reply)); err != nil || got.ParentID != request.Header.ID {
		t.Errorf("parent %q, %v; want %q", got.ParentID, err, request.Header.ID)
	}
}

func TestSignatures(t *testing.T) {
	message, err := wire.New("a", map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	frames := codec(t, "key").Encode(message)
	reader := codec(t, "key")
	if _, err := reader.Decode(frames); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Decode(frames); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("replayed: %v", err)
	}
	if _, err := codec(t, "other").Decode(frames); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("another key: %v", err)
	}
	// If any signed byte changes, the message is refused.
	for i := 2; i < 6; i++ {
		for j := range frames[i] {
			changed := slices.Clone(frames)
			changed[i] = slices.Clone(frames[i])
			changed[i][j] ^= 1
			if _, err := codec(t, "key").Decode(changed); !errors.Is(err, wire.ErrSignature) {
				t.Fatalf("frame %d byte %d changed: %v", i, j, err)
			}
		}
	}
	if _, err := wire.NewCodec("hmac-md5", "key"); err == nil {
		t.Error("no error for an unknown scheme")
	}
}

// FuzzDecode: no frames make Decode panic, with and without a key.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("<IDS|MSG>"), []byte("{}"), []byte("{}"))
	f.Add([]byte("x"), []byte("null"), []byte("[]"))
	f.Fuzz(func(t *testing.T, first, header, rest []byte) {
		for _, key := range []string{"", "key"} {
			_, _ = codec(t, key).Decode([][]byte{first, nil, header, rest, rest, rest})
			_, _ = codec(t, key).Decode([][]byte{first, header})
		}
	})
}
