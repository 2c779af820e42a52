package models_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// TestUNetParameters: with the defaults there are as many as in the usual U-Net in PyTorch.
func TestUNetParameters(t *testing.T) {
	if n := parameters(t, models.UNet(models.UNetConfig{Classes: 1}), 1, 16, 16, 3); n != 31_037_633 {
		t.Errorf("%d parameters, want 31,037,633", n)
	}
}

// TestUNetLearns: a few steps on one batch must fit which pixels are positive in an image.
func TestUNetLearns(t *testing.T) {
	for _, c := range []models.UNetConfig{{Classes: 2, Depth: 2, Width: 8}, {Classes: 2, Depth: 1, Width: 8, NoNorm: true}} {
		images := tensors.MustCopyFlatData[float32](modelstest.Noise(3, 2, 8, 12, 1))
		labels := make([]int32, len(images))
		for i, value := range images {
			if value > 0 {
				labels[i] = 1
			}
		}
		step := stepper(t, models.UNet(c), 1e-2, func() train.Batch {
			return train.Batch{
				Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, 2, 8, 12, 1)},
				Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, 2, 8, 12, 1)},
			}
		})
		first := step()
		var last float32
		for range 30 {
			last = step()
		}
		if !(last < first/2) {
			t.Errorf("%+v: loss fell from %v to %v in 30 steps on one batch, want less than half", c, first, last)
		}
	}
}

func TestUNetRefuses(t *testing.T) {
	image := []int{1, 16, 12, 3}
	for want, c := range map[string]models.UNetConfig{
		"models.UNetConfig: Classes must be at least 1, got 0":         {},
		"models.UNetConfig: Depth must be from 1 to 16, or 0 for 4, g": {Classes: 1, Depth: -1},
		"Depth must be from 1 to 16, or 0 for 4, got 17":               {Classes: 1, Depth: 17},
		"Width must be at least 1, or 0 for 64, got -1":                {Classes: 1, Width: -1},
		"models.UNet: x has shape (Float32)[1, 16, 12, 3]; with a Depth of 4, height and width must be multiples of 16: crop or pad the images, or use a smaller Depth": {Classes: 1},
	} {
		refuses(t, models.UNet(c), image, want)
	}
	refuses(t, models.UNet(models.UNetConfig{Classes: 1}), []int{1, 16, 16}, "models.UNet: x has shape (Float32)[1, 16, 16]; it must be [batch, height, width, channels]")
}
