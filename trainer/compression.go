package trainer

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// The values of Config.GradientCompression.
const (
	noCompression   = "none"
	bf16Compression = "bf16"
)

// compressed returns the gradients in the type in which they travel, if they do.
func (s *stepper) compressed(gradients []*graph.Node) []*graph.Node {
	if s.compression != bf16Compression || s.world.Size() == 1 {
		return gradients
	}
	return convert(gradients, dtypes.BFloat16)
}
