package models_test

import (
	"testing"

	"gonbatch/models"
)

// BenchmarkMNISTStep runs training steps of the MNIST network with a batch of 64.
func BenchmarkMNISTStep(b *testing.B) {
	step := trainer(b, models.MNIST, 64, []int{28, 28, 1})
	step()
	for b.Loop() {
		step()
	}
	b.ReportMetric(64*float64(b.N)/b.Elapsed().Seconds(), "img/s")
}
