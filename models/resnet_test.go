package models_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/google/go-cmp/cmp"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

func TestResNet18(t *testing.T) {
	store := model.NewStore()
	out, err := model.CallOnce(modelstest.Backend(t), store, models.ResNet18(10), modelstest.Noise(1, 2, 9, 16, 3))
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
	if n != 11_173_962 {
		t.Errorf("%d parameters, want 11,173,962", n)
	}
}

// TestResNet18Learns: a few steps on one batch must fit it, so the gradient reaches every layer.
func TestResNet18Learns(t *testing.T) {
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
		name    string
		classes int
		size    []int
		want    string
	}{
		{"no classes", 0, []int{1, 32, 32, 3}, "models.ResNet18: 0 classes; there must be at least 1"},
		{"grey", 10, []int{5, 32, 32, 1}, "x has shape (Float32)[5, 32, 32, 1]; it must be [batch, height, width, 3], with a height and width of at least 8"},
		{"small", 10, []int{5, 32, 7, 3}, "of at least 8"},
		{"flat", 10, []int{5, 3072}, "it must be [batch, height, width, 3]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			network := func(scope *model.Scope, x *graph.Node) *graph.Node { return models.ResNet18(tc.classes)(scope, x) }
			_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), network, modelstest.Noise(1, tc.size...))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
