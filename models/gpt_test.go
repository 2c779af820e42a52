package models_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// tiny is a GPT whose reference is quick.
var tiny = models.GPTConfig{VocabSize: 11, ContextLength: 9, Layers: 2, Heads: 3, Width: 12}

// TestGPT compares logits, the loss and its gradients with those of plain loops in float64.
func TestGPT(t *testing.T) {
	const batch, n = 3, 7
	store, tokens := wideGPT(t, tiny), randomTokens(tiny.VocabSize, batch, n+1)
	inputs, next := columns(tokens, batch, 0, n), columns(tokens, batch, 1, n+1)
	var variables []*model.Variable
	for v := range store.IterVariables() {
		if v.Trainable {
			variables = append(variables, v)
		}
	}
	exec, err := model.NewExec(modelstest.Backend(t), store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
		logits := models.GPT(tiny)(scope, in[0])
		loss := models.NextTokenLoss(in[1:], []*graph.Node{logits})
		var weights []*graph.Node
		for _, v := range variables {
			weights = append(weights, v.NodeValue(loss.Graph()))
		}
		return append([]*graph.Node{logits, loss}, graph.Gradient(loss, weights...)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Exec(tensors.FromFlatDataAndDimensions(inputs, batch, n), tensors.FromFlatDataAndDimensions(next, batch, n))
	if err != nil {
		t.Fatal(err)
	}
	r := newReference(t, tiny, store)
	loss := func() (sum float64) {
		for i := range batch {
			sum += r.loss(inputs[i*n:(i+1)*n], next[i*n:(i+1)*n]) / batch
		}
		return sum
	}
	var want []float64
	for i := range batch {
		want = append(want, slices.Concat(r.logits(inputs[i*n:(i+1)*n])...)...)
	}
	near(t, "logits", tensors.MustCopyFlatData[float32](out[0]), want)
	near(t, "the loss", tensors.MustCopyFlatData[float32](out[1]), []float64{loss()})
	for i, v := range variables {
		got, weights, random := tensors.MustCopyFlatData[float32](out[2+i]), r.weights[v.Path()], rand.New(rand.NewPCG(5, 6))
		for range 5 {
			at, change := random.IntN(len(weights)), 1e-4
			weights[at] += change
			above := loss()
			weights[at] -= 2 * change
			below := loss()
			weights[at] += change
			near(t, fmt.Sprintf("the gradient of %s[%d]", v.Path(), at), got[at:at+1], []float64{(above - below) / (2 * change)})
		}
	}
}

// near checks values, whose size is about 1, to 1e-4.
func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, value := range want {
		if !(math.Abs(float64(got[i])-value) < 1e-4) {
			t.Errorf("%s: value %d is %g, want %g", what, i, got[i], value)
			return
		}
	}
}

// wideGPT returns the weights of a model, none of them near 0 or 1, as the initial ones are.
func wideGPT(t *testing.T, config models.GPTConfig) *model.Store {
	t.Helper()
	store := model.NewStore()
	predict(t, store, config, make([]int32, config.ContextLength), 1)
	seed := uint64(0)
	for v := range store.IterVariables() {
		if !v.Trainable {
			continue
		}
		seed++
		noise := tensors.MustCopyFlatData[float32](modelstest.Noise(seed, v.Shape().Dimensions...))
		for i := range noise {
			noise[i] /= 2
		}
		if err := v.SetValue(tensors.FromFlatDataAndDimensions(noise, v.Shape().Dimensions...)); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// predict returns the logits of sequences.
func predict(t *testing.T, store *model.Store, config models.GPTConfig, tokens []int32, batch int) []float32 {
	t.Helper()
	out, err := model.CallOnce(modelstest.Backend(t), store, models.GPT(config), tensors.FromFlatDataAndDimensions(tokens, batch, len(tokens)/batch))
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{batch, len(tokens) / batch, config.VocabSize}; !slices.Equal(out.Shape().Dimensions, want) {
		t.Fatalf("logits of shape %s, want %v", out.Shape(), want)
	}
	return tensors.MustCopyFlatData[float32](out)
}

func randomTokens(vocabulary, batch, n int) []int32 {
	tokens, random := make([]int32, batch*n), rand.New(rand.NewPCG(3, 4))
	for i := range tokens {
		tokens[i] = int32(random.IntN(vocabulary))
	}
	return tokens
}

// columns returns columns begin to end-1 of rows.
func columns(tokens []int32, rows, begin, end int) (some []int32) {
	for row := range slices.Chunk(tokens, len(tokens)/rows) {
		some = append(some, row[begin:end]...)
	}
	return some
}

// TestGPTIsCausal: a token changes its own logits and later ones, but none before it, whether or
// not there are tokens after it.
func TestGPTIsCausal(t *testing.T) {
	store, n := wideGPT(t, tiny), tiny.ContextLength
	tokens := randomTokens(tiny.VocabSize, 1, n)
	batch := slices.Clone(tokens)
	for changed := range n {
		batch = append(batch, tokens...)
		at := (1+changed)*n + changed
		batch[at] = (batch[at] + 1) % int32(tiny.VocabSize)
	}
	places := slices.Collect(slices.Chunk(predict(t, store, tiny, batch, 1+n), tiny.VocabSize))
	for changed := range n {
		for place := range n {
			// Rows of a batch are rounded differently.
			difference := 0.0
			for i, logit := range places[(1+changed)*n+place] {
				difference = max(difference, math.Abs(float64(logit-places[place][i])))
			}
			if same := difference < 1e-5; same != (place < changed) {
				t.Errorf("token %d changed: the logits at %d differ by %g", changed, place, difference)
			}
		}
	}
	short := predict(t, store, tiny, tokens[:4], 1)
	want := make([]float64, len(short))
	for i := range short {
		want[i] = float64(places[i/tiny.VocabSize][i%tiny.VocabSize])
	}
	near(t, "logits of the beginning", short, want)
}

// TestRotation: the product of a query and a key depends on their distance, not on their places.
func TestRotation(t *testing.T) {
	const n, size = 20, 8
	q, k := tensors.MustCopyFlatData[float32](modelstest.Noise(1, size)), tensors.MustCopyFlatData[float32](modelstest.Noise(2, size))
	turned := func(x []float32) []float32 { // The same vector at each place.
		same := tensors.FromFlatDataAndDimensions(slices.Repeat(x, n), n, size)
		out, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), func(_ *model.Scope, x *graph.Node) *graph.Node { return models.Rotated(x) }, same)
		if err != nil {
			t.Fatal(err)
		}
		return tensors.MustCopyFlatData[float32](out)
	}
	q, k = turned(q), turned(k)
	product := func(p, other int) (sum float64) {
		for i := range size {
			sum += float64(q[p*size+i]) * float64(k[other*size+i])
		}
		return sum
	}
	for distance := range n {
		for other := range n - distance {
			if got, want := product(other+distance, other), product(distance, 0); math.Abs(got-want) > 1e-5 {
				t.Errorf("places %d and %d: %g, but %g at 0 and %d", other, other+distance, got, want, distance)
			}
		}
	}
	if math.Abs(product(0, 0)-product(1, 0)) < 1e-3 || math.Abs(product(1, 0)-product(0, 1)) < 1e-3 {
		t.Errorf("the product doesn't depend on the distance: %g, %g, %g", product(0, 0), product(1, 0), product(0, 1))
	}
}

func TestGPTParameters(t *testing.T) {
	small := models.GPTConfig{VocabSize: 100, ContextLength: 64, Layers: 3, Heads: 4, Width: 128}
	store := model.NewStore()
	predict(t, store, small, make([]int32, 64), 1)
	n := 0
	for v := range store.IterVariables() {
		if v.Trainable {
			n += v.Shape().Size()
		}
	}
	// 100 embeddings of 128; in each of 3 layers, matrices of 128 x 384, 128 x 128, 128 x 512 and
	// 512 x 128, their biases, and 2 normalizations of 2 x 128; and a last normalization.
	if want := 100*128 + 3*(128*384+384+128*128+128+128*512+512+512*128+128+2*256) + 256; n != want || n != small.Parameters() || n != 607_872 {
		t.Errorf("%d parameters, Parameters returns %d, want %d", n, small.Parameters(), want)
	}
	if n := (models.GPTConfig{VocabSize: 50_257, ContextLength: 1024, Layers: 12, Heads: 12, Width: 768}).Parameters(); n != 124_439_808-1024*768 {
		t.Errorf("GPT-2's size has %d parameters, want GPT-2's without the embeddings of 1,024 positions", n)
	}
}

// TestGPTLearns: the initial loss is that of a guess, and a few steps on one batch must fit it, so
// the gradient reaches every layer.
func TestGPTLearns(t *testing.T) {
	config := models.GPTConfig{VocabSize: 50, ContextLength: 16, Layers: 2, Heads: 2, Width: 64}
	step := gptTrainer(t, config, 4)
	first := step()
	if guess := math.Log(50); math.Abs(float64(first)-guess) > 0.05*guess {
		t.Errorf("the initial loss is %g, want about ln 50 = %g", first, guess)
	}
	var last float32
	for range 60 {
		last = step()
	}
	if !(last < first/4) {
		t.Errorf("loss fell from %v to %v in 60 steps on one batch, want less than a quarter", first, last)
	}
}

// TestGPTDropout: dropout changes what a training sees, and nothing else.
func TestGPTDropout(t *testing.T) {
	store, tokens := wideGPT(t, tiny), randomTokens(tiny.VocabSize, 2, 9)
	dropping := tiny
	dropping.Dropout = 0.3
	want := predict(t, store, tiny, tokens, 2)
	if got := predict(t, store, dropping, tokens, 2); !slices.Equal(got, want) {
		t.Error("dropout changes predictions")
	}
	inTraining := func(config models.GPTConfig) []float32 {
		out, err := model.CallOnce(modelstest.Backend(t), store, func(scope *model.Scope, x *graph.Node) *graph.Node {
			scope.Store().SetTraining(x.Graph(), true)
			return models.GPT(config)(scope, x)
		}, tensors.FromFlatDataAndDimensions(tokens, 2, 9))
		if err != nil {
			t.Fatal(err)
		}
		return tensors.MustCopyFlatData[float32](out)
	}
	if got := inTraining(tiny); !slices.Equal(got, want) {
		t.Error("without dropout, a training's logits differ")
	}
	if a, b := inTraining(dropping), inTraining(dropping); slices.Equal(a, want) || slices.Equal(a, b) {
		t.Error("in a training, dropout changes nothing, or twice the same")
	}
}

func TestGPTRefuses(t *testing.T) {
	change := func(f func(*models.GPTConfig)) models.GPTConfig { c := tiny; f(&c); return c }
	for want, config := range map[string]models.GPTConfig{
		"VocabSize must be at least 1, got 0":                          change(func(c *models.GPTConfig) { c.VocabSize = 0 }),
		"ContextLength must be at least 1, got -3":                     change(func(c *models.GPTConfig) { c.ContextLength = -3 }),
		"Layers must be at least 1, got 0":                             change(func(c *models.GPTConfig) { c.Layers = 0 }),
		"Heads must be at least 1, got 0":                              change(func(c *models.GPTConfig) { c.Heads = 0 }),
		"Width must be at least 1, got 0":                              change(func(c *models.GPTConfig) { c.Width = 0 }),
		"Width must be a multiple of 2*Heads = 6, because":             change(func(c *models.GPTConfig) { c.Width = 15 }),
		"Dropout must be at least 0 and less than 1, got 1":            change(func(c *models.GPTConfig) { c.Dropout = 1 }),
		"Dropout must be at least 0 and less than 1, got NaN":          change(func(c *models.GPTConfig) { c.Dropout = math.NaN() }),
		"models.GPT: 9 tokens at once; the ContextLength is 8: pass t": change(func(c *models.GPTConfig) { c.ContextLength = 8 }),
	} {
		t.Run(want, func(t *testing.T) {
			_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), models.GPT(config), tensors.FromFlatDataAndDimensions(make([]int32, 9), 1, 9))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
	_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), models.GPT(tiny), modelstest.Noise(1, 2, 9))
	if err == nil || !strings.Contains(err.Error(), "the tokens have the shape (Float32)[2, 9]; it must be [batch, n] of an integer type") {
		t.Errorf("error %v", err)
	}
}

// TestNextTokenLossOfMask: a mask isn't ignored.
func TestNextTokenLossOfMask(t *testing.T) {
	next, mask := tensors.FromFlatDataAndDimensions(make([]int32, 18), 2, 9), tensors.FromFlatDataAndDimensions(make([]bool, 18), 2, 9)
	_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), func(_ *model.Scope, in []*graph.Node) *graph.Node {
		return models.NextTokenLoss(in[1:], in[:1])
	}, modelstest.Noise(1, 2, 9, 5), next, mask)
	if err == nil || !strings.Contains(err.Error(), "1 tensor beside the labels: it takes no mask and no weights") {
		t.Errorf("error %v", err)
	}
}

func TestNextTokenLossRefuses(t *testing.T) {
	logits, labels := modelstest.Noise(1, 2, 9, 5), tensors.FromFlatDataAndDimensions(make([]int32, 18), 2, 9, 1)
	_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), func(_ *model.Scope, in []*graph.Node) *graph.Node {
		return models.NextTokenLoss(in[1:], in[:1])
	}, logits, labels)
	if err == nil || !strings.Contains(err.Error(), "models.NextTokenLoss: the labels are (Int32)[2, 9, 1] and the logits (Float32)[2, 9, 5]; they must be [batch, n]") {
		t.Errorf("error %v", err)
	}
}
