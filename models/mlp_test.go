package models_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/google/go-cmp/cmp"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// TestMLPOfImages: the pixels of an image are the features.
func TestMLPOfImages(t *testing.T) {
	for want, network := range map[int]func(*model.Scope, *graph.Node) *graph.Node{13 * 10: models.Linear(10), 13*8 + 9*10: models.MLP(10, 8)} {
		store := model.NewStore()
		out, err := model.CallOnce(modelstest.Backend(t), store, network, modelstest.Noise(1, 5, 2, 2, 3))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{5, 10}, out.Shape().Dimensions); diff != "" {
			t.Errorf("shape of the result (-want +got):\n%s", diff)
		}
		n := 0
		for v := range store.IterVariables() {
			if v.Trainable {
				n += v.Shape().Size()
			}
		}
		if n != want {
			t.Errorf("%d parameters, want %d", n, want)
		}
	}
}

func TestMLPRefuses(t *testing.T) {
	numbers := modelstest.Noise(1, 5, 2)
	for want, test := range map[string]struct {
		network func(*model.Scope, *graph.Node) *graph.Node
		x       *tensors.Tensor
	}{
		"models.MLP: a layer of width 0; it must be at least 1":                           {models.MLP(3, 4, 0), numbers},
		"models.MLP: a layer of width -1":                                                 {models.MLP(-1, 4), numbers},
		"models.Linear: a layer of width 0":                                               {models.Linear(0), numbers},
		"models.Linear: x has shape (Int32)[1, 2]; it must be [batch, ...] of floating":   {models.Linear(1), tensors.FromValue([][]int32{{1, 2}})},
		"models.MLP: x has shape (Float32)[2]; it must be [batch, ...] of floating-point": {models.MLP(1, 4), tensors.FromValue([]float32{1, 2})},
	} {
		if _, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), test.network, test.x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
