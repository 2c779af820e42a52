package models_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models"
)

// reference is a GPT as plain loops over one sequence, in float64.
type reference struct {
	models.GPTConfig
	weights map[string][]float64 // By the path of the variable.
}

// newReference copies the weights of a model.
func newReference(t *testing.T, config models.GPTConfig, store *model.Store) reference {
	t.Helper()
	r := reference{config, map[string][]float64{}}
	for v := range store.IterVariables() {
		if v.Trainable {
			for _, value := range tensors.MustCopyFlatData[float32](v.MustValue()) {
				r.weights[v.Path()] = append(r.weights[v.Path()], float64(value))
			}
		}
	}
	return r
}

// loss is the mean of -log p of the next tokens.
func (r reference) loss(tokens, next []int32) (sum float64) {
	for i, logits := range r.logits(tokens) {
		total := 0.0
		for _, logit := range logits {
			total += math.Exp(logit)
		}
		sum += math.Log(total) - logits[next[i]]
	}
	return sum / float64(len(tokens))
}

// logits returns those of the next token at each place.
func (r reference) logits(tokens []int32) (all [][]float64) {
	table, x := r.weights["/tokens/embeddings"], make([][]float64, len(tokens))
	for p, token := range tokens {
		x[p] = append(x[p], table[int(token)*r.Width:(int(token)+1)*r.Width]...)
	}
	for layer := range r.Layers {
		at := "/layer_" + string(rune('0'+layer))
		add(x, r.dense(at+"/attention/projection", r.attention(r.dense(at+"/attention/qkv", r.normalized(at+"/attention", x)))))
		hidden := r.dense(at+"/mlp/hidden", r.normalized(at+"/mlp", x))
		for _, row := range hidden {
			for i, h := range row {
				row[i] = h * 0.5 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(h+0.044715*h*h*h)))
			}
		}
		add(x, r.dense(at+"/mlp/projection", hidden))
	}
	for _, row := range r.normalized("/last", x) {
		logits := make([]float64, r.VocabSize)
		for token := range logits {
			logits[token] = dot(row, table[token*r.Width:(token+1)*r.Width])
		}
		all = append(all, logits)
	}
	return all
}

func (r reference) attention(qkv [][]float64) [][]float64 {
	size, all := r.Width/r.Heads, make([][]float64, len(qkv))
	for p := range qkv {
		for head := range r.Heads {
			part := func(place, i int) []float64 { return qkv[place][i*r.Width+head*size:][:size] }
			query, sum, y := turned(part(p, 0), p), 0.0, make([]float64, size)
			for other := range p + 1 {
				weight := math.Exp(dot(query, turned(part(other, 1), other)) / math.Sqrt(float64(size)))
				sum += weight
				for i, value := range part(other, 2) {
					y[i] += weight * value
				}
			}
			for _, value := range y {
				all[p] = append(all[p], value/sum)
			}
		}
	}
	return all
}

// turned turns the pairs x[i], x[i+size/2] by p * 10000^(-2i/size).
func turned(x []float64, p int) []float64 {
	y, half := make([]float64, len(x)), len(x)/2
	for i := range half {
		sin, cos := math.Sincos(float64(p) * math.Pow(10_000, -2*float64(i)/float64(len(x))))
		y[i], y[i+half] = x[i]*cos-x[i+half]*sin, x[i]*sin+x[i+half]*cos
	}
	return y
}

func (r reference) normalized(scope string, x [][]float64) [][]float64 {
	gain, offset := r.weights[scope+"/layer_normalization/gain"], r.weights[scope+"/layer_normalization/offset"]
	all := make([][]float64, len(x))
	for p, row := range x {
		mean, variance := 0.0, 0.0
		for _, value := range row {
			mean += value / float64(len(row))
		}
		for _, value := range row {
			variance += (value - mean) * (value - mean) / float64(len(row))
		}
		for i, value := range row {
			all[p] = append(all[p], (value-mean)/math.Sqrt(variance+1e-5)*gain[i]+offset[i])
		}
	}
	return all
}

func (r reference) dense(scope string, x [][]float64) [][]float64 {
	weights, biases, all := r.weights[scope+"/weights"], r.weights[scope+"/biases"], make([][]float64, len(x))
	for p, row := range x {
		for i, sum := range biases {
			for j, value := range row {
				sum += value * weights[j*len(biases)+i]
			}
			all[p] = append(all[p], sum)
		}
	}
	return all
}

func add(x, y [][]float64) {
	for p, row := range y {
		for i, value := range row {
			x[p][i] += value
		}
	}
}

func dot(a, b []float64) (sum float64) {
	for i, value := range a {
		sum += value * b[i]
	}
	return sum
}
