package models

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/layers/attention/pos"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/nn"

	"gonbatch/internal/layerhooks"
)

// GPTConfig is the size of a GPT. All numbers but Dropout must be at least 1.
type GPTConfig struct {
	VocabSize     int // Number of different tokens.
	ContextLength int // Most tokens that the model sees at once.
	Layers        int
	Heads         int // Attention heads in each layer. Width must be an even multiple of them.
	Width         int // Length of the vector that stands for a token.
	// Dropout is the probability with which a training drops an element: of the embeddings, of the
	// attention weights, and of what each layer adds. It is at least 0 and less than 1.
	Dropout float64
}

// Validate returns an error that names a value which no GPT can have.
func (c GPTConfig) Validate() error {
	for _, size := range []struct {
		name  string
		value int
	}{{"VocabSize", c.VocabSize}, {"ContextLength", c.ContextLength}, {"Layers", c.Layers}, {"Heads", c.Heads}, {"Width", c.Width}} {
		if size.value < 1 {
			return fmt.Errorf("models.GPTConfig: %s must be at least 1, got %d", size.name, size.value)
		}
	}
	if c.Width%(2*c.Heads) != 0 {
		return fmt.Errorf("models.GPTConfig: Width must be a multiple of 2*Heads = %d, because each head rotates pairs of numbers; got %d", 2*c.Heads, c.Width)
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		return fmt.Errorf("models.GPTConfig: Dropout must be at least 0 and less than 1, got %g", c.Dropout)
	}
	return nil
}

// Parameters returns the number of parameters, V*W + L*(12*W^2 + 13*W) + 2*W for a vocabulary of V
// tokens, L layers and a width of W.
func (c GPTConfig) Parameters() int {
	return c.VocabSize*c.Width + c.Layers*(12*c.Width*c.Width+13*c.Width) + 2*c.Width
}

// GPT returns a language model: a transformer that predicts, at each place of a text, the token
// that comes next from those up to there. It is GPT-2's decoder (Radford et al., Language Models
// are Unsupervised Multitask Learners, 2019) with its pre-normalized layers, GELU, biases and
// initial weights, but with rotary position embeddings (Su et al., RoFormer, 2021,
// https://arxiv.org/abs/2104.09864) instead of learned ones. The embeddings of the tokens are also
// the weights of the last layer (Press & Wolf, Using the Output Embedding to Improve Language
// Models, 2017, https://arxiv.org/abs/1608.05859).
//
// The network's input is tokens [batch, n] of an integer type, from 0 to VocabSize-1, with n at
// most ContextLength. Its result is logits, [batch, n, VocabSize], those of the next token at each
// place. Use NextTokenLoss to train it. Weights and computation have the types of the trainer's
// precision; outside of a trainer they are float32. In mixed precision the embeddings are looked
// up in float32, and so their gradients, which add up over all places of a token, are exact.
//
// These are the variables, and the tensors with the same meaning in nanoGPT, a GPT-2 in PyTorch
// (https://github.com/karpathy/nanoGPT). Its weights don't fit unless it is changed to rotate
// positions, instead of learning transformer.wpe, and to compute GELU by tanh. The weights of a
// dense layer are [in, out] here and [out, in] there.
//
//	tokens/embeddings                             transformer.wte.weight, lm_head.weight
//	layer_0/attention/layer_normalization/...     transformer.h.0.ln_1....
//	layer_0/attention/qkv/weights, biases         transformer.h.0.attn.c_attn.weight, bias
//	layer_0/attention/projection/weights, biases  transformer.h.0.attn.c_proj.weight, bias
//	layer_0/mlp/layer_normalization/...           transformer.h.0.ln_2....
//	layer_0/mlp/hidden/weights, biases            transformer.h.0.mlp.c_fc.weight, bias
//	layer_0/mlp/projection/weights, biases        transformer.h.0.mlp.c_proj.weight, bias
//	last/layer_normalization/...                  transformer.ln_f....
//
// The parts of a normalization are gain and offset here, and weight and bias there. As in GPT-NeoX
// and Llama, a head's numbers i and i+Width/(2*Heads) are rotated as a pair.
func GPT(c GPTConfig) func(scope *model.Scope, tokens *graph.Node) *graph.Node {
	return func(scope *model.Scope, tokens *graph.Node) *graph.Node {
		c.check(tokens)
		g, n := tokens.Graph(), tokens.Shape().Dimensions[1]
		types := layerhooks.PrecisionOf(g)
		embeddings, shape := scope.In("tokens"), shapes.Make(types.Weights, c.VocabSize, c.Width)
		table := embeddings.WithInitializer(normal(embeddings, initialDeviation)).VariableWithShape("embeddings", shape).NodeValue(g)
		x := graph.ConvertDType(graph.Gather(table, graph.InsertAxes(tokens, -1)), types.Compute)
		x = layers.DropoutStatic(scope, x, c.Dropout)
		positions := rotation(g, types.Compute, n, c.Width/c.Heads)
		for i := range c.Layers {
			layer := scope.In("layer_%d", i)
			x = graph.Add(x, c.attention(layer.In("attention"), x, positions))
			x = graph.Add(x, c.perceptron(layer.In("mlp"), x))
		}
		return nn.Dense(normalized(scope.In("last"), x), graph.ConvertDType(table, types.Compute), nil, compute.DenseLayoutOutputsInput)
	}
}

func (c GPTConfig) check(tokens *graph.Node) {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if !tokens.DType().IsInt() || tokens.Rank() != 2 {
		panic(fmt.Errorf("models.GPT: the tokens have the shape %s; it must be [batch, n] of an integer type", tokens.Shape()))
	}
	if n := tokens.Shape().Dimensions[1]; n > c.ContextLength {
		panic(fmt.Errorf("models.GPT: %d tokens at once; the ContextLength is %d: pass the last %d tokens", n, c.ContextLength, c.ContextLength))
	}
}

// attention is what the attention of a layer adds to x: each head adds up values of the tokens up
// to each place, weighted by how well their keys match its query.
func (c GPTConfig) attention(scope *model.Scope, x *graph.Node, positions turn) *graph.Node {
	batch, n, size := x.Shape().Dimensions[0], x.Shape().Dimensions[1], c.Width/c.Heads
	all := dense(scope.In("qkv"), normalized(scope, x), 3*c.Width, initialDeviation)
	qkv := parts(graph.Reshape(all, batch, n, 3, c.Heads, size)) // Each [batch, heads, n, size].
	options := attention.CoreOptions{UseCausalMask: true}
	if c.Dropout > 0 {
		options.Scope, options.DropoutRate = scope, graph.Scalar(x.Graph(), dtypes.Float32, c.Dropout)
	}
	y, _ := attention.Core(positions.encode(qkv[0]), positions.encode(qkv[1]), qkv[2], attention.LayoutBHSD, options)
	y = graph.Reshape(graph.TransposeAllAxes(y, 0, 2, 1, 3), batch, n, c.Width)
	return c.residual(scope, y)
}

// perceptron is what the two dense layers of a layer add to x.
func (c GPTConfig) perceptron(scope *model.Scope, x *graph.Node) *graph.Node {
	hidden := dense(scope.In("hidden"), normalized(scope, x), 4*c.Width, initialDeviation)
	return c.residual(scope, activation.GeluApproximate(hidden))
}

// residual is a dense layer whose result is added to x. There are two in each layer of the network,
// so their initial weights are smaller by the root of that number.
func (c GPTConfig) residual(scope *model.Scope, y *graph.Node) *graph.Node {
	y = dense(scope.In("projection"), y, c.Width, initialDeviation/math.Sqrt(float64(2*c.Layers)))
	return layers.DropoutStatic(scope, y, c.Dropout)
}

func normalized(scope *model.Scope, x *graph.Node) *graph.Node {
	return norm.LayerNorm(scope, x, -1).Epsilon(1e-5).Done()
}

// turn turns pairs of numbers of a query or key by an angle that is proportional to its place: pair
// i at place p by p * 10000^(-2i/size). Their product then depends only on how far apart the two
// places are.
type turn struct{ cos, sin *graph.Node } // [n, size/2]

// encode turns x, [..., n, size]. The gradient turns back by the same angles.
func (t turn) encode(x *graph.Node) *graph.Node {
	by := func(cos, sin, x *graph.Node) *graph.Node {
		return pos.NewRoPEWithCosSin(cos, sin).Encode(x, x.Rank()-2)
	}
	return linear{
		forward:  func(x *graph.Node) []*graph.Node { return []*graph.Node{by(t.cos, t.sin, x)} },
		gradient: func(v []*graph.Node) *graph.Node { return by(t.cos, graph.Neg(t.sin), v[0]) },
	}.of(x)[0]
}

// rotation returns the turn of n places. The angles are computed in at least float32: a place may
// have more digits than half precision.
func rotation(g *graph.Graph, dtype dtypes.DType, n, size int) turn {
	rates := make([]float64, size/2)
	for i := range rates {
		rates[i] = math.Pow(10_000, -2*float64(i)/float64(size))
	}
	if n*len(rates) > mostConstants {
		angles := dtype
		if dtype.IsHalfPrecision() {
			angles = dtypes.Float32
		}
		angle := graph.Mul(graph.Iota(g, shapes.Make(angles, n, size/2), 0), graph.ConvertDType(graph.Const(g, [][]float64{rates}), angles))
		return turn{graph.ConvertDType(graph.Cos(angle), dtype), graph.ConvertDType(graph.Sin(angle), dtype)}
	}
	table := func(f func(float64) float64) *graph.Node {
		values := make([][]float64, n)
		for place := range values {
			values[place] = make([]float64, len(rates))
			for i, rate := range rates {
				values[place][i] = f(float64(place) * rate)
			}
		}
		return graph.ConvertDType(graph.Const(g, values), dtype)
	}
	return turn{table(math.Cos), table(math.Sin)}
}

// mostConstants is how many sines and cosines a program has as constants. XLA computes longer
// tables in each step, and again for each layer that uses them: with 256 places, this took 3 % of a
// training step on a CPU.
const mostConstants = 1 << 17
