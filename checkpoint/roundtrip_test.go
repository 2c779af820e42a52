package checkpoint_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
)

// allTypes returns a store with a variable of each type, and odd shapes and names.
func allTypes(t *testing.T) *model.Store {
	t.Helper()
	store := model.NewStore()
	for path, value := range map[string]*tensors.Tensor{
		"/f32":       tensors.FromValue([][]float32{{1.5, float32(math.Inf(1)), -0}, {1e-45, 3, 4}}),
		"/deep/f64":  tensors.FromValue([]float64{math.Pi, math.MaxFloat64, math.NaN()}),
		"/f16":       tensors.FromValue([]float16.Float16{float16.FromFloat32(1.5), float16.FromFloat32(-2)}),
		"/bf16":      tensors.FromValue([]bfloat16.BFloat16{bfloat16.FromFloat32(1.5), bfloat16.FromFloat32(-2)}),
		"/i8":        tensors.FromValue([]int8{-128, 127}),
		"/i16":       tensors.FromValue([]int16{-32768}),
		"/i32":       tensors.FromValue([][][]int32{{{1}, {-2}}}),
		"/i64":       tensors.FromValue([]int64{math.MinInt64, math.MaxInt64}),
		"/u8":        tensors.FromValue([]uint8{0, 255}),
		"/u16":       tensors.FromValue([]uint16{65535}),
		"/u32":       tensors.FromValue([]uint32{math.MaxUint32}),
		"/u64":       tensors.FromValue([]uint64{math.MaxUint64}),
		"/bool":      tensors.FromValue([]bool{true, false, true}),
		"/c64":       tensors.FromValue([]complex64{1 + 2i}),
		"/scalar":    tensors.FromScalar(float32(42)),
		"/yes":       tensors.FromScalar(true),
		"/empty":     tensors.FromShape(shapes.Make(dtypes.Float32, 2, 0)),
		"/na me.ü/<": tensors.FromScalar(int32(7)),
	} {
		_, err := store.CreateVariable(path, value)
		ok(t, err)
	}
	return store
}

func TestRoundTrip(t *testing.T) {
	store := allTypes(t)
	s := take(t, store)
	s.Step, s.WorldSize, s.CodeHash = 1234, 4, "abc"
	s.Ranks = [][]byte{{1, 2}, {}, {3}}
	s.Progress["loop"] = json.RawMessage(`{"epoch":3,"order":[1,2]}`)
	s.Metrics["val/loss"], s.Metrics["bad"], s.Metrics["worse"] = 0.1, math.NaN(), math.Inf(-1)
	dir := open(t, checkpoint.Options{})
	ok(t, dir.Save(s))
	got := latest(t, dir)
	sameTensors(t, s, got)
	same(t, s.Ranks, got.Ranks)
	same(t, s.Progress, got.Progress)
	if !math.IsNaN(got.Metrics["bad"]) {
		t.Errorf("NaN is read as %v", got.Metrics["bad"])
	}
	delete(got.Metrics, "bad")
	same(t, checkpoint.Metrics{"val/loss": 0.1, "worse": math.Inf(-1)}, got.Metrics)
	if got.Step != 1234 || got.WorldSize != 4 || got.CodeHash != "abc" || got.Path == "" {
		t.Errorf("read %+v", got)
	}
	if all, err := checkpoint.List(dir.Path()); err != nil || len(all) != 1 || all[0].Versions["go"] == "" || all[0].Time.IsZero() {
		t.Errorf("listed %+v, %v", all, err)
	}

	restored := model.NewStore()
	ok(t, got.Restore(restored))
	for path := range got.Tensors {
		if restored.GetVariable(path) == nil {
			t.Errorf("%s isn't loaded", path)
		}
	}
	sameTensors(t, s, take(t, restored))
}

func TestSaveRefuses(t *testing.T) {
	tests := []struct {
		name, path, want string
		value            *tensors.Tensor
	}{
		{name: "a type without a name in the format", path: "/x", value: tensors.FromValue([]complex128{1}), want: "use another type"},
		{name: "the format's own name", path: "/__metadata__", value: tensors.FromScalar(int32(1)), want: "rename it"},
		{name: "a name that isn't UTF-8", path: "/\xff", value: tensors.FromScalar(int32(1)), want: "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := model.NewStore()
			_, err := store.CreateVariable(tt.path, tt.value)
			ok(t, err)
			dir := open(t, checkpoint.Options{})
			contains(t, dir.Save(take(t, store)), tt.want, dir.Path())
			empty(t, dir.Path())
		})
	}
}
