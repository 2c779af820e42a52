// Package gomlx lets %keep carry GoMLX values from one cell to the next: variables of type
// *tensors.Tensor, []*tensors.Tensor, map[string]*tensors.Tensor and *model.Store. The kernel and
// the export import it into programs that use GoMLX; you don't need to import it yourself.
//
// Values are saved as safetensors files. A loaded store has the values of all its variables; a
// graph finds them when it asks for the variables.
//
//	import _ "gonbatch/kernel/keep/gomlx"
package gomlx
