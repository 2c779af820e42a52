package models_test

import (
	"testing"

	"gonbatch/models"
)

// One training step of the MNIST network, batch 64.
func BenchmarkMNISTStep(b *testing.B) {
	step := trainer(b, models.MNIST, 64, []int{28, 28, 1})
	step()
	for b.Loop() {
		step()
	}
	b.ReportMetric(64*float64(b.N)/b.Elapsed().Seconds(), "img/s")
}
