package data

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/internal/plural"
)

// Windows is a Dataset of the windows of a text, for models that predict the next token. An
// example's input is context tokens of the text, [batch, context] int32, and its label the same
// shifted by one: the token that follows each of them.
//
// The windows are side by side, so an epoch reads the text once; an incomplete window at the end is
// left out. In each epoch of a training run they begin at other places; see Seeded. Divide a text
// by the method Split: the function Split draws windows at random, and in a training run each
// part's windows would reach into those of the other.
type Windows struct {
	name    string
	context int
	tokens  tokens
	seed    uint64
}

var _ Epochs = (*Windows)(nil)

// tokens are those of a text.
type tokens interface {
	len() int
	// copy copies the tokens from begin on.
	copy(to []int32, begin int)
	slice(begin, end int) tokens
}

type tokensOf[T uint8 | uint16 | int32] []T

func (t tokensOf[T]) len() int                    { return len(t) }
func (t tokensOf[T]) slice(begin, end int) tokens { return t[begin:end] }

func (t tokensOf[T]) copy(to []int32, begin int) {
	for i, token := range t[begin : begin+len(to)] {
		to[i] = int32(token)
	}
}

// Text returns the windows of a text, each with a context of so many tokens of the vocabulary. A
// token takes one byte of memory if the vocabulary has up to 256, two up to 65,536, and else four.
//
//	vocabulary, err := data.Characters(text)
//	windows, err := data.Text("plays", text, vocabulary, 64)
//	trainSet, validationSet, err := windows.Split(0.9)
func Text(name, text string, v *Vocabulary, context int) (*Windows, error) {
	var all tokens
	var err error
	switch n := v.Len(); { // What is not kept would take five times as much memory as the text.
	case n <= math.MaxUint8+1:
		all, err = encode[uint8](v, text)
	case n <= math.MaxUint16+1:
		all, err = encode[uint16](v, text)
	default:
		all, err = encode[int32](v, text)
	}
	if err != nil {
		return nil, fmt.Errorf("data: %s: %w", name, err)
	}
	return newWindows(name, context, all)
}

// Token is an integer type of tokens.
type Token interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Tokens returns the windows of a text that another tokenizer has encoded, such as a byte-pair
// encoder. Tokenizers differ in the type of their tokens, so any type of integers will do. A token
// takes one byte of memory if all tokens are less than 256, two if they are less than 65,536, and
// else four.
//
//	bpe, err := tiktoken.GetEncoding("cl100k_base") // github.com/pkoukk/tiktoken-go
//	windows, err := data.Tokens("plays", bpe.EncodeOrdinary(text), 64)
func Tokens[T Token](name string, all []T, context int) (*Windows, error) {
	var largest T
	for i, token := range all {
		if token < 0 {
			return nil, fmt.Errorf("data: %s: token %d of the text is %d; tokens begin at 0", name, i, token)
		}
		if uint64(token) > math.MaxInt32 {
			return nil, fmt.Errorf("data: %s: token %d of the text is %d; the largest possible one is %d", name, i, token, math.MaxInt32)
		}
		largest = max(largest, token)
	}
	switch {
	case uint64(largest) <= math.MaxUint8:
		return newWindows(name, context, converted[uint8](all))
	case uint64(largest) <= math.MaxUint16:
		return newWindows(name, context, converted[uint16](all))
	}
	return newWindows(name, context, converted[int32](all))
}

// converted returns numbers in another type, which holds them.
func converted[To uint8 | uint16 | int32, From Token](all []From) tokensOf[To] {
	numbers := make(tokensOf[To], len(all))
	for i, n := range all {
		numbers[i] = To(n)
	}
	return numbers
}

func newWindows(name string, context int, all tokens) (*Windows, error) {
	if context < 1 {
		return nil, fmt.Errorf("data: %s: the context must be at least 1 token, got %d", name, context)
	}
	if all.len() <= context {
		return nil, fmt.Errorf("data: %s has %s; a context of %d needs at least %d, because each is followed by one to predict", name, plural.Of(all.len(), "token"), context, context+1)
	}
	return &Windows{name: name, context: context, tokens: all}, nil
}

// Seeded returns the same windows, which begin at other places in the epochs of a training run.
// Without it, the seed is 0. The text is shared.
//
//	trainSet = trainSet.Seeded(7) // The trainer's seed.
func (w *Windows) Seeded(seed uint64) *Windows {
	other := *w
	other.seed = seed
	return &other
}

// Split divides the text: fraction of its tokens are in the first part, the others in the second.
// No token is in both.
func (w *Windows) Split(fraction float64) (first, second *Windows, err error) {
	if !(fraction > 0 && fraction < 1) {
		return nil, nil, fmt.Errorf("data: split %s: the fraction must be more than 0 and less than 1, got %g", w.name, fraction)
	}
	at := int(math.Round(fraction * float64(w.tokens.len())))
	if first, err = newWindows(w.name+"-first", w.context, w.tokens.slice(0, at)); err != nil {
		return nil, nil, err
	}
	if second, err = newWindows(w.name+"-second", w.context, w.tokens.slice(at, w.tokens.len())); err != nil {
		return nil, nil, err
	}
	return first.Seeded(w.seed), second.Seeded(w.seed), nil
}

// Name implements Dataset.
func (w *Windows) Name() string { return w.name }

// Len returns the number of windows.
func (w *Windows) Len() int { return (w.tokens.len() - 1) / w.context }

// Tokens returns the length of the text.
func (w *Windows) Tokens() int { return w.tokens.len() }

// Fingerprint hashes the tokens and the length of a window. It implements Fingerprinted.
func (w *Windows) Fingerprint() string {
	hash, some := sha256.New(), make([]int32, min(w.tokens.len(), 1<<16))
	fmt.Fprintln(hash, w.context, w.tokens.len())
	for begin := 0; begin < w.tokens.len(); begin += len(some) {
		some = some[:min(len(some), w.tokens.len()-begin)]
		w.tokens.copy(some, begin)
		_ = binary.Write(hash, binary.LittleEndian, some) // A hash returns no errors.
	}
	return sum(hash)
}

// Batch implements Dataset.
func (w *Windows) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return w.batch(indices, 0)
}

// EpochBatch implements Epochs. The first window of an epoch begins at a random place in what is
// the first window of Batch. The place depends only on the epoch and the seed.
func (w *Windows) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return w.batch(indices, rand.New(rand.NewPCG(windowStream^w.seed, uint64(epoch))).IntN(w.context))
}

// windowStream makes the random numbers differ from those of other packages with the same epoch.
const windowStream = 0x77696e646f7773

// batch returns windows that begin shift tokens after their places. The last one ends with the
// text.
func (w *Windows) batch(indices []int, shift int) (inputs, labels []*tensors.Tensor, err error) {
	if err := CheckNumbers(w.name, indices, w.Len()); err != nil {
		return nil, nil, err
	}
	shape := shapes.Make(dtypes.Int32, len(indices), w.context)
	x, y := tensors.FromShape(shape), tensors.FromShape(shape)
	for by, t := range []*tensors.Tensor{x, y} {
		err := tensors.MutableFlatData(t, func(flat []int32) {
			for i, index := range indices {
				begin := min(index*w.context+shift, w.tokens.len()-1-w.context)
				w.tokens.copy(flat[i*w.context:(i+1)*w.context], begin+by)
			}
		})
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return []*tensors.Tensor{x}, []*tensors.Tensor{y}, nil
}
