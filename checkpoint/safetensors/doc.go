// Package safetensors reads and writes the safetensors format, which PyTorch, JAX, NumPy and
// Hugging Face's tools read: a JSON header with the name, type, shape and position of each tensor,
// followed by the bytes of all tensors. It implements the format only: it has no tensor type,
// handles no files, and converts no numbers.
//
// The format is specified at https://github.com/huggingface/safetensors#format. Headers are read
// strictly: this package refuses everything that Python's own library refuses, and also unknown
// fields, tensors without a name, and space where the format has none.
//
//	plan, err := safetensors.NewPlan([]safetensors.Tensor{{Name: "dense/weights", DType: safetensors.F32, Shape: []int{2, 3}}}, nil)
//	check(err)
//	_, err = f.Write(plan.Header())
//	for _, tensor := range plan.Tensors() { // in the order of the file
//		_, err = f.Write(data[tensor.Name])
//	}
//
//	header, err := safetensors.ReadHeader(f, size)
//	for _, tensor := range header.Tensors {
//		_, err = f.ReadAt(data[tensor.Name], header.DataStart+tensor.Begin)
//	}
package safetensors
