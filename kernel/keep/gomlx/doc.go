// Package gomlx lets %keep carry what GoMLX makes from one cell to the next: variables of type
// *tensors.Tensor, []*tensors.Tensor, map[string]*tensors.Tensor and *model.Store. The kernel and
// the export import it into programs that use GoMLX; nothing else needs it.
//
// Values are safetensors files. A store has the values of all its variables again, which graphs
// find when they ask for them.
//
//	import _ "gonbatch/kernel/keep/gomlx"
package gomlx
