package models_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/tier"
	"gonbatch/models"
	"gonbatch/models/modelstest"
)

func TestResNet18(t *testing.T) {
	for _, tc := range []struct {
		name       string
		network    func(*model.Scope, *graph.Node) *graph.Node
		parameters int
	}{
		{"usual", models.ResNet18(10), 11_173_962},
		{"narrow", models.NarrowResNet18(10, 8), 176_402},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := model.NewStore()
			out, err := model.CallOnce(modelstest.Backend(t), store, tc.network, modelstest.Noise(1, 2, 9, 16, 3))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]int{2, 10}, out.Shape().Dimensions); diff != "" {
				t.Errorf("shape of the logits (-want +got):\n%s", diff)
			}
			n := 0
			for v := range store.IterVariables() {
				if v.Trainable {
					n += v.Shape().Size()
				}
			}
			if n != tc.parameters {
				t.Errorf("%d parameters, want %d", n, tc.parameters)
			}
		})
	}
}

// TestResNet18Learns: a few steps on one batch must fit it, so the gradient reaches every layer.
func TestResNet18Learns(t *testing.T) {
	tier.Long(t)
	step := trainer(t, models.ResNet18(10), 8, []int{16, 16, 3})
	first := step()
	var last float32
	for range 10 {
		last = step()
	}
	if !(last < first/4) {
		t.Errorf("loss fell from %v to %v in 10 steps on one batch, want less than a quarter", first, last)
	}
}

func TestResNet18RefusesOtherImages(t *testing.T) {
	tests := []struct {
		name              string
		classes, channels int
		size              []int
		want              string
	}{
		{"no channels", 10, 0, []int{1, 32, 32, 3}, "models.NarrowResNet18: channels must be at least 1, got 0"},
		{"no classes", 0, 64, []int{1, 32, 32, 3}, "models.ResNet18: 0 classes; there must be at least 1"},
		{"grey", 10, 64, []int{5, 32, 32, 1}, "x has shape (Float32)[5, 32, 32, 1]; it must be [batch, height, width, 3], with a height and width of at least 8"},
		{"small", 10, 64, []int{5, 32, 7, 3}, "of at least 8"},
		{"flat", 10, 64, []int{5, 3072}, "it must be [batch, height, width, 3]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			network := func(scope *model.Scope, x *graph.Node) *graph.Node {
				return models.NarrowResNet18(tc.classes, tc.channels)(scope, x)
			}
			_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), network, modelstest.Noise(1, tc.size...))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
