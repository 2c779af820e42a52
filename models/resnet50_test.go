package models_test

import (
	"testing"

	"gonbatch/internal/tier"
	"gonbatch/models"
)

func TestResNet50Parameters(t *testing.T) {
	if n := parameters(t, models.ResNet50(1000), 1, 32, 32, 3); n != 25_557_032 {
		t.Errorf("%d parameters, want 25,557,032", n)
	}
}

// TestResNet50Learns: a few steps on one batch must fit it, so the gradient reaches every layer.
func TestResNet50Learns(t *testing.T) {
	tier.Long(t)
	step := trainer(t, models.ResNet50(10), 4, []int{32, 32, 3})
	first := step()
	var last float32
	for range 8 {
		last = step()
	}
	if !(last < first/2) {
		t.Errorf("loss fell from %v to %v in 8 steps on one batch, want less than half", first, last)
	}
}

func TestResNet50Refuses(t *testing.T) {
	refuses(t, models.ResNet50(0), []int{1, 64, 64, 3}, "models.ResNet50: 0 classes; there must be at least 1")
	refuses(t, models.ResNet50(3), []int{1, 64, 31, 3}, "models.ResNet50: x has shape (Float32)[1, 64, 31, 3]; it must be [batch, height, width, 3], with a height and width of at least 32")
}
