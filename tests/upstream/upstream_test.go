// Package upstream has the bugs of other projects that gonbatch works around: docs/upstream.md
// lists them. A test fails as soon as its bug is fixed, so that the way around it can go.
package upstream

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/prometheus/procfs"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
	"gonbatch/internal/tier"
	"gonbatch/models/modelstest"
)

// errFixed says that a bug is gone.
var errFixed = errors.New("it is fixed: remove the way around it, its row in docs/upstream.md and this test")

// still returns nil if the bug is there.
func still(there bool) error {
	if !there {
		return errFixed
	}
	return nil
}

// TestLibraries: each bug of a library is still there. A test returns errFixed if it isn't, and
// another error if it can't tell.
func TestLibraries(t *testing.T) {
	for name, look := range map[string]func(t *testing.T) error{
		"shapes": shapesOfSlices, "even kernel": evenKernel, "padded kernel": paddedKernel, "empty": noElements, "pad": paddedAxis,
		"mountinfo": mountInfo,
	} {
		t.Run(name, func(t *testing.T) {
			if err := look(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// shapesOfSlices: the shape of n numbers takes at least n allocations.
func shapesOfSlices(*testing.T) error {
	numbers := make([]float32, 1000)
	allocations := testing.AllocsPerRun(3, func() { _, _ = shapes.FromAnyValue(numbers) })
	return still(int(allocations) >= len(numbers))
}

// gradient returns the gradient with respect to an image of 4 x 4 pixels of the sum of a
// convolution's results, each times its number. The kernel is 1 2, 3 4.
func gradient(t *testing.T, padding int) (got []float32, err error) {
	image := tensors.FromFlatDataAndDimensions(make([]float32, 16), 1, 4, 4, 1)
	kernel := tensors.FromFlatDataAndDimensions([]float32{1, 2, 3, 4}, 2, 2, 1, 1)
	out, err := graph.CallOnce(modelstest.Backend(t), func(x, kernel *graph.Node) *graph.Node {
		y := graph.Convolve(x, kernel).PaddingPerDim([][2]int{{padding, padding}, {padding, padding}}).Done()
		numbers := graph.IotaFull(x.Graph(), y.Shape())
		return graph.Gradient(graph.ReduceAllSum(graph.Mul(y, numbers)), x)[0]
	}, image, kernel)
	if err != nil {
		return nil, err
	}
	return tensors.MustCopyFlatData[float32](out), nil
}

// evenKernel: the 3 x 3 results have the numbers 0 to 8. The second pixel is in the first two of
// them, by the kernel's 2 and 1; the last pixel is in the last of them, by its 4.
func evenKernel(t *testing.T) error {
	got, err := gradient(t, 0)
	if err != nil {
		return err
	}
	return still(got[1] != 2*0+1*1 || got[15] != 4*8)
}

func paddedKernel(t *testing.T) error {
	_, err := gradient(t, 1)
	return still(err != nil)
}

// noElements: the sum of an array without elements has a gradient, without elements.
func noElements(t *testing.T) error {
	_, err := graph.CallOnce(modelstest.Backend(t), func(x *graph.Node) *graph.Node {
		return graph.Gradient(graph.ReduceAllSum(x), x)[0]
	}, tensors.FromFlatDataAndDimensions([]float32{}, 0, 3))
	return still(err != nil)
}

// paddedAxis: the second axis is not padded.
func paddedAxis(t *testing.T) error {
	_, err := graph.CallOnce(modelstest.Backend(t), func(x *graph.Node) *graph.Node {
		y := graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), graph.PadAxis{End: 1})
		return graph.Gradient(graph.ReduceAllSum(y), x)[0]
	}, tensors.FromFlatDataAndDimensions([]float32{1, 2}, 1, 2))
	return still(err != nil)
}

// mountInfo: \040 is a space.
func mountInfo(t *testing.T) error {
	proc := t.TempDir()
	err := os.Mkdir(filepath.Join(proc, "1"), 0o777)
	if err == nil {
		err = os.WriteFile(filepath.Join(proc, "1", "mountinfo"), []byte("22 1 0:21 / /a\\040b rw - tmpfs none rw\n"), 0o666)
	}
	if err != nil {
		return err
	}
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return err
	}
	p, err := fs.Proc(1)
	if err != nil {
		return err
	}
	mounts, err := p.MountInfo()
	if err != nil {
		return err
	}
	return still(mounts[0].MountPoint != "/a b")
}

// TestGoNB: each bug of GoNB is still there, which shows in what the cells print.
func TestGoNB(t *testing.T) {
	tier.Long(t)
	bugs := []struct {
		name  string
		cells []string
		there func(said string) bool
	}{
		{"blank variable", []string{"func hello() int { fmt.Println(\"hello\"); return 1 }\nvar _ = hello()\n%%\nfmt.Println(2)"},
			func(said string) bool { return strings.Count(said, "hello") == 2 }},
		{"raw string", []string{"%%\nfmt.Println(`a\n%b\nc`)"}, func(said string) bool { return strings.Contains(said, "a\nc") }},
		{"comment", []string{"/*\n!echo executed\n*/\n%%\nfmt.Println(1)"}, func(said string) bool { return strings.Contains(said, "executed") }},
		{"constant", []string{"const (\nA = iota\nB\n)\n%%\nfmt.Println(A, B)", "const (\nB = 5\n)\n%%\nfmt.Println(A, B)"},
			func(said string) bool { return strings.Contains(said, "failed to run") }},
		{"second main", []string{"func main() { fmt.Println(1) }\n\nfunc main() { fmt.Println(2) }"},
			func(said string) bool { return strings.TrimSpace(said) == "2" }},
		{"second program", []string{"%%\nfmt.Println(1)\n%%\nfmt.Println(2)"}, func(said string) bool { return strings.HasSuffix(said, "ended") }},
	}
	var all [][]string
	for _, bug := range bugs {
		all = append(all, bug.cells)
	}
	for i, said := range inGoNB(t, all) {
		t.Run(bugs[i].name, func(t *testing.T) {
			if err := still(bugs[i].there(said)); err != nil {
				t.Errorf("%v; the cells print %q", err, said)
			}
		})
	}
}

// inGoNB returns what each list of cells prints in a GoNB of its own.
func inGoNB(t *testing.T, cells [][]string) (said []string) {
	t.Helper()
	gonb, err := exec.LookPath("gonb")
	if err != nil {
		machine.Lacks(t, "GoNB is not on PATH: make test installs it")
	}
	python, err := filepath.Abs("../../.cache/venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		machine.Lacks(t, "there is no Jupyter client: make test installs it")
	}
	script, err := filepath.Abs("gonb.py")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(map[string]any{"argv": []string{gonb, "--kernel", "{connection_file}"}, "display_name": "GoNB", "language": "go"})
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(cells)
	if err != nil {
		t.Fatal(err)
	}
	jupyter := t.TempDir()
	folder := filepath.Join(jupyter, "kernels", "gonb")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kernel.json"), spec, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, script, string(input))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "JUPYTER_PATH="+jupyter)
	out, err := bounded.Output(cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Logf("%s", exit.Stderr)
	}
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil || len(said) != len(cells) {
		t.Fatalf("%v: %s", err, out)
	}
	return said
}
