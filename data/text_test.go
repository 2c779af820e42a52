package data_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// alphabets have 3 characters, more than one byte can number, and more than two bytes can.
func alphabets() map[string][]rune {
	all := map[string][]rune{"3": []rune("aé网"), "300": nil, "70,000": nil}
	for r := rune('!'); len(all["70,000"]) < 70_000; r++ {
		if utf8.ValidRune(r) {
			all["70,000"] = append(all["70,000"], r)
		}
	}
	all["300"] = all["70,000"][:300]
	return all
}

// TestVocabulary encodes and decodes random texts.
func TestVocabulary(t *testing.T) {
	for name, alphabet := range alphabets() {
		t.Run(name, func(t *testing.T) {
			v, err := data.Characters(string(alphabet) + string(alphabet))
			if err != nil || v.Len() != len(alphabet) {
				t.Fatalf("%d characters, %v; want %d", v.Len(), err, len(alphabet))
			}
			random := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				text, want := "", []int32{}
				for range random.IntN(20) {
					i := random.IntN(len(alphabet))
					text, want = text+string(alphabet[i]), append(want, int32(i))
				}
				tokens, err := v.Encode(text)
				if err != nil || !slices.Equal(tokens, want) {
					t.Fatalf("%q is %v, %v; want %v", text, tokens, err, want)
				}
				if back, err := v.Decode(tokens); err != nil || back != text {
					t.Fatalf("%q became %q, %v", text, back, err)
				}
			}
		})
	}
}

func TestBytes(t *testing.T) {
	text := "é\xff\x00a"
	v := data.Bytes()
	tokens, err := v.Encode(text)
	if err != nil || !slices.Equal(tokens, []int32{0xc3, 0xa9, 0xff, 0, 'a'}) || v.Len() != 256 {
		t.Errorf("%q is %v of %d, %v", text, tokens, v.Len(), err)
	}
	if back, err := v.Decode(tokens); err != nil || back != text {
		t.Errorf("%q became %q, %v", text, back, err)
	}
}

func TestVocabularyRefuses(t *testing.T) {
	v, err := data.Characters("abc\ufffd")
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	_, err = data.Characters("")
	refuses(err, "an empty text")
	_, err = data.Characters("é\xe9")
	refuses(err, "byte 2 of the text, 0xe9, is not UTF-8: use the vocabulary of data.Bytes")
	_, err = v.Encode("abé")
	refuses(err, "character 2 of the text, 'é', is not among the 4 characters of the vocabulary")
	_, err = v.Encode("a\xff")
	refuses(err, "byte 1 of the text, 0xff, is not UTF-8")
	_, err = v.Decode([]int32{0, 4})
	refuses(err, "token 1 of the text is 4; the vocabulary has 0 to 3")
	_, err = v.Decode([]int32{-1})
	refuses(err, "token 0 of the text is -1")
}

// TestText compares random batches of random texts with slices of them.
func TestText(t *testing.T) {
	for name, alphabet := range alphabets() {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			v, err := data.Characters(string(alphabet))
			if err != nil {
				t.Fatal(err)
			}
			for range 30 {
				context := 1 + random.IntN(12)
				want := make([]int32, context+1+random.IntN(80))
				for i := range want {
					want[i] = int32(random.IntN(len(alphabet)))
				}
				text, err := v.Decode(want)
				if err != nil {
					t.Fatal(err)
				}
				ds, err := data.Text("random", text, v, context)
				if err != nil {
					t.Fatal(err)
				}
				checkWindows(t, ds, want, context, random)
				if ds, err = data.Tokens("random", want, context); err != nil {
					t.Fatal(err)
				}
				checkWindows(t, ds, want, context, random)
			}
		})
	}
}

// checkWindows checks all windows of a text, in a random order and outside and inside of a
// training.
func checkWindows(t *testing.T, ds *data.Windows, want []int32, context int, random *rand.Rand) {
	t.Helper()
	n := (len(want) - 1) / context
	if ds.Len() != n || ds.Tokens() != len(want) {
		t.Fatalf("%d windows of %d tokens; want %d of %d", ds.Len(), ds.Tokens(), n, len(want))
	}
	order := random.Perm(n)
	x, y := windows(t, ds, -1, order, context)
	for i, index := range order {
		if begin := index * context; !slices.Equal(x[i], want[begin:begin+context]) || !slices.Equal(y[i], want[begin+1:begin+1+context]) {
			t.Fatalf("window %d of %d: %v, %v", index, n, x[i], y[i])
		}
	}
	for epoch := range 3 {
		x, y = windows(t, ds, epoch, order, context)
		shifts := slices.DeleteFunc(rangeOf(context), func(shift int) bool { return !shifted(x, y, want, order, shift, context) })
		if len(shifts) == 0 {
			t.Fatalf("epoch %d: windows %v are %v, from no common shift", epoch, order, x)
		}
		if again, _ := windows(t, ds, epoch, order, context); !slices.EqualFunc(x, again, slices.Equal) {
			t.Fatalf("epoch %d is %v, then %v", epoch, x, again)
		}
	}
}

func rangeOf(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// shifted reports whether the windows begin shift tokens after their places, but the last one early
// enough to end with the text.
func shifted(x, y [][]int32, want []int32, order []int, shift, context int) bool {
	for i, index := range order {
		begin := min(index*context+shift, len(want)-1-context)
		if !slices.Equal(x[i], want[begin:begin+context]) || !slices.Equal(y[i], want[begin+1:begin+1+context]) {
			return false
		}
	}
	return true
}

// windows returns inputs and labels as rows, outside of a training if epoch is -1.
func windows(t *testing.T, ds data.Dataset, epoch int, indices []int, context int) (x, y [][]int32) {
	t.Helper()
	inputs, labels, err := ds.Batch(indices)
	if epoch >= 0 {
		inputs, labels, err = data.EpochBatch(ds, epoch, indices)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := func(all []*tensors.Tensor) [][]int32 {
		if d := all[0].Shape().Dimensions; len(all) != 1 || !slices.Equal(d, []int{len(indices), context}) {
			t.Fatalf("%d tensors of shape %v, want one of [%d, %d]", len(all), d, len(indices), context)
		}
		return slices.Collect(slices.Chunk(tensors.MustCopyFlatData[int32](all[0]), context))
	}
	return rows(inputs), rows(labels)
}

// TestTextShifts: the windows of different epochs begin at different places.
func TestTextShifts(t *testing.T) {
	ds, err := data.Text("x", strings.Repeat("abcdefghijklmnopqrstuvwxyz", 10), data.Bytes(), 26)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int32]bool{}
	for epoch := range 100 {
		x, _ := windows(t, ds, epoch, []int{0}, 26)
		seen[x[0][0]] = true
	}
	if len(seen) < 20 {
		t.Errorf("the windows of 100 epochs begin with %d different letters, want nearly 26", len(seen))
	}
}

// TestTextSeeds: the places of windows differ between seeds and are equally likely, those of seed 0
// stay what they were in earlier versions, and the parts of a text keep the seed.
func TestTextSeeds(t *testing.T) {
	const context, seeds = 26, 5200
	plain, err := data.Text("x", strings.Repeat("abcdefghijklmnopqrstuvwxyz", 10), data.Bytes(), context)
	if err != nil {
		t.Fatal(err)
	}
	shift := func(ds *data.Windows, epoch int) int {
		x, _ := windows(t, ds, epoch, []int{0}, context)
		return int(x[0][0] - 'a')
	}
	for epoch := range 20 {
		want := rand.New(rand.NewPCG(0x77696e646f7773, uint64(epoch))).IntN(context)
		if got := shift(plain, epoch); got != want || shift(plain.Seeded(0), epoch) != want {
			t.Errorf("epoch %d without a seed begins at %d, want %d", epoch, got, want)
		}
	}
	var counts, after [context]int
	for seed := range uint64(seeds) {
		at := shift(plain.Seeded(seed), 3)
		counts[at]++
		after[(shift(plain.Seeded(seed+1), 3)-at+context)%context]++ // Similar seeds have nothing in common.
	}
	for place := range context {
		if n, m := counts[place], after[place]; n < 100 || n > 300 || m < 100 || m > 300 {
			t.Errorf("%d of %d seeds begin at %d, and %d are followed by one so far away; want about %d", n, seeds, place, m, seeds/context)
		}
	}
	for seed := range uint64(50) {
		first, second, err := plain.Seeded(seed).Split(0.5)
		if err != nil {
			t.Fatal(err)
		}
		want := shift(plain.Seeded(seed), 5)
		if a, b := shift(first, 5), shift(second, 5); a != want || b != want {
			t.Errorf("seed %d: the parts begin at %d and %d, the text at %d", seed, a, b, want)
		}
	}
}

// TestTextSplit: no token is in both parts, whatever the epoch.
func TestTextSplit(t *testing.T) {
	text := strings.Repeat("a", 70) + strings.Repeat("b", 30)
	ds, err := data.Text("x", text, data.Bytes(), 4)
	if err != nil {
		t.Fatal(err)
	}
	first, second, err := ds.Split(0.7)
	if err != nil {
		t.Fatal(err)
	}
	if first.Tokens() != 70 || second.Tokens() != 30 || first.Name() == second.Name() {
		t.Errorf("%s of %d tokens and %s of %d", first.Name(), first.Tokens(), second.Name(), second.Tokens())
	}
	for epoch := -1; epoch < 20; epoch++ {
		for part, letter := range map[*data.Windows]int32{first: 'a', second: 'b'} {
			x, y := windows(t, part, epoch, rangeOf(part.Len()), 4)
			for i, token := range append(slices.Concat(x...), slices.Concat(y...)...) {
				if token != letter {
					t.Fatalf("epoch %d, %s: token %d is %q", epoch, part.Name(), i, token)
				}
			}
		}
	}
}

func TestTextRefuses(t *testing.T) {
	letters, err := data.Characters("abc")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text string
		context    int
		want       string
	}{
		{"no context", "abcabc", 0, "data: x: the context must be at least 1 token, got 0"},
		{"short", "abc", 3, "data: x has 3 tokens; a context of 3 needs at least 4"},
		{"empty", "", 1, "data: x has 0 tokens"},
		{"another character", "ab\nc", 1, `data: x: character 2 of the text, '\n', is not among the 3 characters`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := data.Text("x", tt.text, letters, tt.context); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	for want, all := range map[string][]int32{"data: x: token 1 of the text is -3; tokens begin at 0": {7, -3}, "data: x has 2 tokens; a context of 2 needs": {1, 2}} {
		if _, err := data.Tokens("x", all, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	ds, err := data.Text("x", "abcabcabca", letters, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, indices := range [][]int{nil, {-1}, {3}} {
		if _, _, err := ds.Batch(indices); err == nil || !strings.Contains(err.Error(), "x: ") {
			t.Errorf("windows %v: %v", indices, err)
		}
	}
	for fraction, want := range map[float64]string{0: "got 0", 1: "got 1", 0.9: "x-second has 1 token; a context of 3", 0.2: "x-first has 2 tokens"} {
		if _, _, err := ds.Split(fraction); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("split at %g: %v, want %q", fraction, err, want)
		}
	}
}
