package data_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/pkoukk/tiktoken-go"

	"gonbatch/data"
)

// TestTokensOfAnyType: the windows are the same, whatever the tokenizer's type of tokens is.
func TestTokensOfAnyType(t *testing.T) {
	for _, large := range []int32{100, math.MaxUint8, math.MaxUint8 + 1, math.MaxUint16, math.MaxUint16 + 1, math.MaxInt32} {
		want := []int32{7, 0, large, 3, 3, 12, large, 1}
		expected, err := data.Tokens("x", want, 3)
		if err != nil {
			t.Fatal(err)
		}
		checkTokens(t, expected, typed[int](want))
		checkTokens(t, expected, typed[int64](want))
		checkTokens(t, expected, typed[uint](want))
		checkTokens(t, expected, typed[uint32](want))
		if large <= math.MaxUint16 {
			checkTokens(t, expected, typed[uint16](want))
		}
	}
}

func typed[T data.Token](all []int32) []T {
	var tokens []T
	for _, token := range all {
		tokens = append(tokens, T(token))
	}
	return tokens
}

// checkTokens checks that the windows of tokens are those that are expected.
func checkTokens[T data.Token](t *testing.T, expected *data.Windows, all []T) {
	t.Helper()
	got, err := data.Tokens("x", all, 3)
	if err != nil {
		t.Errorf("%T: %v", all, err)
		return
	}
	if got.Len() != expected.Len() || got.Fingerprint() != expected.Fingerprint() {
		t.Errorf("%T: %d windows, want %d, or the fingerprint differs", all, got.Len(), expected.Len())
	}
	inputs, labels, err := got.Batch([]int{1, 0})
	wantInputs, wantLabels, wantErr := expected.Batch([]int{1, 0})
	if err != nil || wantErr != nil {
		t.Fatal(err, wantErr)
	}
	for i, pair := range [][2]*tensors.Tensor{{inputs[0], wantInputs[0]}, {labels[0], wantLabels[0]}} {
		if got, want := tensors.MustCopyFlatData[int32](pair[0]), tensors.MustCopyFlatData[int32](pair[1]); !slices.Equal(got, want) {
			t.Errorf("%T: tensor %d is %v, want %v", all, i, got, want)
		}
	}
}

// TestTokensRefuses: a token that doesn't fit is an error, not another token.
func TestTokensRefuses(t *testing.T) {
	for want, try := range map[string]func() error{
		"token 1 of the text is -3; tokens begin at 0":                              func() error { return tokensError([]int64{7, -3, 1}) },
		"token 2 of the text is 2147483648; the largest possible one is 2147483647": func() error { return tokensError([]int{7, 1, 1 << 31}) },
		"token 0 of the text is 4294967296; the largest":                            func() error { return tokensError([]uint64{1 << 32, 1, 2}) },
		"token 0 of the text is 18446744073709551615; the largest":                  func() error { return tokensError([]uint64{math.MaxUint64, 1, 2}) },
		"token 0 of the text is -32768; tokens begin at 0":                          func() error { return tokensError([]int16{math.MinInt16, 1, 2}) },
		"data: x has 2 tokens; a context of 2 needs at least 3":                     func() error { return tokensError([]uint8{1, 2}) },
		"data: x has 0 tokens; a context of 2 needs at least 3":                     func() error { return tokensError([]uint8{}) },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func tokensError[T data.Token](all []T) error {
	_, err := data.Tokens("x", all, 2)
	return err
}

// A byte-pair encoder makes tokens of a text. The one here has few pairs; tiktoken.GetEncoding
// returns those of OpenAI's models.
func ExampleTokens() {
	ranks := map[string]int{}
	for b := range 256 {
		ranks[string([]byte{byte(b)})] = b
	}
	for i, pair := range []string{"th", "the", " the", "at", " a", " at"} {
		ranks[pair] = 256 + i
	}
	pairs, err := tiktoken.NewCoreBPE(ranks, nil, `\s*\S+`)
	if err != nil {
		panic(err)
	}
	bpe := tiktoken.NewTiktoken(pairs, &tiktoken.Encoding{}, nil)

	windows, err := data.Tokens("hats", bpe.EncodeOrdinary("the cat at the hat"), 4)
	if err != nil {
		panic(err)
	}
	inputs, labels, err := windows.Batch([]int{0})
	if err != nil {
		panic(err)
	}
	fmt.Println(inputs[0].Value(), labels[0].Value())
	fmt.Printf("%d tokens, of which the first are %q\n", windows.Tokens(), bpe.Decode([]int{257, 32, 'c', 259}))
	// Output:
	// [[257 32 99 259]] [[32 99 259 261]]
	// 9 tokens, of which the first are "the cat"
}
