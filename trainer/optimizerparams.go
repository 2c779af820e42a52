package trainer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gonbatch/trainer/internal/step"

	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// learningRate is the hyper-parameter with an optimizer's own rate, before any schedule.
const learningRate = "learning_rate"

// weightDecay is the hyper-parameter by which an optimizer makes weights smaller.
const weightDecay = "weight_decay"

// optimizerParams returns the hyper-parameters of an objective's optimizer: its type and, from its
// fields, the numbers and booleans, which GoMLX's optimizers don't export. The learning rate of one
// that has it from elsewhere is known later: see rates.params.
func optimizerParams(o Objective) map[string]any {
	kind := reflect.TypeOf(o.Optimizer)
	params := map[string]any{paramName(o, "optimizer"): strings.TrimPrefix(kind.String(), "*")}
	for name, value := range settings(reflect.ValueOf(o.Optimizer), plain(kind).PkgPath(), deepest) {
		rate, isNumber := value.(float64)
		switch {
		case !isNumber || name != learningRate && name != "initial_"+learningRate:
			params[paramName(o, "optimizer."+name)] = value
		case rate >= 0: // Below 0, it is not set.
			params[paramName(o, learningRate)] = shortest(rate)
		}
	}
	return params
}

// unsetRate is the learning rate of GoMLX's optimizers that have their default.
const unsetRate = -1

// checkNumbers refuses a learning rate of 0, which trains nothing, one below, for which GoMLX's
// optimizers take their default, and a weight decay that makes weights grow.
func checkNumbers(o Objective) error {
	kind := reflect.TypeOf(o.Optimizer)
	for name, value := range settings(reflect.ValueOf(o.Optimizer), plain(kind).PkgPath(), deepest) {
		number, isNumber := value.(float64)
		switch {
		case !isNumber:
		case strings.HasSuffix(name, learningRate) && !(number > 0) && number != unsetRate:
			return fmt.Errorf("%s: %g: it must be above 0 (trainer.Freeze keeps weights as they are)", paramName(o, learningRate), number)
		case name == weightDecay && !(number >= 0):
			return fmt.Errorf("%s: %g: it can't be negative", paramName(o, "optimizer."+name), number)
		}
	}
	return nil
}

// params returns the optimizers' own learning rates, which are known once the program of an update
// is built.
func (r *rates) params() map[string]any {
	params := map[string]any{}
	for _, o := range r.objectives {
		if base, known := r.base[o.Scope]; known {
			params[paramName(o, learningRate)] = shortest(base)
		}
	}
	return params
}

// paramName returns the name of an objective's hyper-parameter: "learning_rate", or
// "generator.learning_rate" if the objective has a name.
func paramName(o Objective, name string) string {
	if o.Name == "" {
		return name
	}
	return o.Name + "." + name
}

// deepest is how many structs settings looks into, one in another.
const deepest = 3

// settings returns the numbers and booleans in a struct and the structs in it, if they are of the
// package, by names such as "weight_decay".
func settings(v reflect.Value, pkg string, depth int) map[string]any {
	all := map[string]any{}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || v.Type().PkgPath() != pkg || depth == 0 {
		return all
	}
	for i := range v.NumField() {
		if value := plainValue(v.Field(i)); value != nil {
			all[snake(v.Type().Field(i).Name)] = value
		} else {
			maps.Copy(all, settings(v.Field(i), pkg, depth-1))
		}
	}
	return all
}

// plainValue returns a number or a boolean, also of a field that is not exported; nil for a value
// of another type or of a named one, which may mean anything.
func plainValue(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Pointer || v.Type().PkgPath() != "":
		return nil
	case v.Kind() == reflect.Float32:
		return shortest(v.Float())
	case v.Kind() == reflect.Float64:
		return v.Float()
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	}
	return nil
}

// plain returns the type to which a pointer points.
func plain(kind reflect.Type) reflect.Type {
	if kind.Kind() == reflect.Pointer {
		return kind.Elem()
	}
	return kind
}

// snake turns a field's name, "weightDecay", into one as in YAML: "weight_decay".
func snake(name string) string {
	var text strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			text.WriteByte('_')
		}
		text.WriteRune(unicode.ToLower(r))
	}
	return text.String()
}

// shortest returns the shortest number that float32 can't tell from x: 0.001, and not
// 0.0010000000474974513.
func shortest(x float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', -1, 32), 64)
	if err != nil {
		return x // It is beyond float32's range.
	}
	return short
}

// elementwise are the types of the optimizers that compute each element of a weight from the same
// element of its gradient and of their state, and whose state has known names. The first is that of
// Adam, AdamW, Adamax and RMSProp.
var elementwise = []reflect.Type{reflect.TypeOf(optimizer.Adam().Done()), reflect.TypeOf(optimizer.StochasticGradientDescent().Done()), reflect.TypeFor[SGD]()}

// checkElementwise returns an error if the strategy can't divide an objective's update.
func checkElementwise(c Config, objectives []Objective) error {
	for _, o := range objectives {
		if kind := reflect.TypeOf(o.Optimizer); c.Strategy == step.Zero1 && !slices.Contains(elementwise, kind) {
			return fmt.Errorf("strategy: %q can't divide the state of the optimizer %s among the ranks: use Adam, AdamW, Adamax, RMSProp or SGD, or strategy \"ddp\"", step.Zero1, kind)
		}
	}
	return nil
}
