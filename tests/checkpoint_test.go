package tests

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/checkpoint/safetensors"
	"gonbatch/internal/bounded"
)

//go:embed readtensors.py
var readTensors string

// pythonFile is what Python's safetensors library finds in a file.
type pythonFile struct {
	Tensors map[string]struct {
		DType string
		Shape []int
		Bytes string
	}
	Metadata map[string]string
}

// TestPythonReadsWeights saves weights of every type, reads them with Python's own safetensors
// library, and reads the copy that Python writes.
func TestPythonReadsWeights(t *testing.T) {
	t.Parallel()
	weights := map[string]struct {
		value *tensors.Tensor
		dtype string // The name that NumPy uses.
	}{
		"f32":            {tensors.FromValue([][]float32{{1.5, -0.25, 3}, {float32(math.Inf(-1)), 1e-45, 0}}), "float32"},
		"conv_0/f64":     {tensors.FromValue([]float64{math.Pi, math.MaxFloat64}), "float64"},
		"f16":            {tensors.FromValue([]float16.Float16{float16.FromFloat32(1.5), float16.FromFloat32(-65504)}), "float16"},
		"bf16":           {tensors.FromValue([]bfloat16.BFloat16{bfloat16.FromFloat32(1.5), bfloat16.FromFloat32(-2), bfloat16.FromFloat32(7)}), "bfloat16"},
		"i8":             {tensors.FromValue([]int8{-128, 127, 0}), "int8"},
		"i16":            {tensors.FromValue([]int16{-32768}), "int16"},
		"i32":            {tensors.FromValue([][][]int32{{{1}, {-2}}}), "int32"},
		"i64":            {tensors.FromValue([]int64{math.MinInt64, math.MaxInt64}), "int64"},
		"u8":             {tensors.FromValue([]uint8{0, 255, 7}), "uint8"},
		"u16":            {tensors.FromValue([]uint16{65535}), "uint16"},
		"u32":            {tensors.FromValue([]uint32{math.MaxUint32}), "uint32"},
		"u64":            {tensors.FromValue([]uint64{math.MaxUint64}), "uint64"},
		"bool":           {tensors.FromValue([]bool{true, false, true}), "bool"},
		"c64":            {tensors.FromValue([]complex64{1 + 2i}), "complex64"},
		"scalar":         {tensors.FromScalar(float32(42)), "float32"},
		"empty":          {tensors.FromShape(shapes.Make(dtypes.Float32, 2, 0)), "float32"},
		`a "name"/ü & <`: {tensors.FromScalar(true), "bool"},
	}
	store := model.NewStore()
	for name, w := range weights {
		_, err := store.CreateVariable("/"+name, w.value)
		ok(t, err)
	}
	dir, err := checkpoint.Open(t.TempDir(), checkpoint.Options{})
	ok(t, err)
	snapshot, err := checkpoint.Take(store, nil)
	ok(t, err)
	snapshot.Step = 7
	ok(t, dir.Save(snapshot))

	copied := filepath.Join(t.TempDir(), "copy.safetensors")
	got := readByPython(t, filepath.Join(dir.Path(), "step-00000007", "model.safetensors"), copied)
	same(t, map[string]string{"framework": "gomlx", "step": "7"}, got.Metadata)
	if len(got.Tensors) != len(weights) {
		t.Errorf("Python finds %d tensors, %d were saved", len(got.Tensors), len(weights))
	}
	ours := readHere(t, copied)
	for name, w := range weights {
		data := ""
		if !w.value.Shape().IsZeroSize() {
			ok(t, w.value.ConstBytes(func(b []byte) { data = base64.StdEncoding.EncodeToString(b) }))
		}
		read := got.Tensors[name]
		same(t, w.dtype, read.DType)
		same(t, append([]int{}, w.value.Shape().Dimensions...), read.Shape)
		same(t, data, read.Bytes)
		same(t, data, ours[name])
	}
}

func readByPython(t *testing.T, path, copied string) (got pythonFile) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), readers(t, "python"), "-c", readTensors, path, copied)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := bounded.Run(cmd); err != nil {
		t.Fatalf("read %s: %v\n%s", path, err, stderr.String())
	}
	ok(t, json.Unmarshal(stdout.Bytes(), &got))
	return got
}

// readHere reads the tensors of a file with this module's reader.
func readHere(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	ok(t, err)
	header, err := safetensors.ReadHeader(bytes.NewReader(content), int64(len(content)))
	ok(t, err)
	all := map[string]string{}
	for _, tensor := range header.Tensors {
		all[tensor.Name] = base64.StdEncoding.EncodeToString(content[header.DataStart+tensor.Begin : header.DataStart+tensor.End])
	}
	return all
}
