package checkpoint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// trainingScopes are the top-level scopes in which GoMLX keeps variables that only training needs.
var trainingScopes = map[string]bool{
	optimizer.Scope:                 true,
	optimizer.AdamDefaultScope:      true,
	metric.Scope:                    true,
	train.AccumulatedGradientsScope: true,
	strings.Trim(train.TrainerAbsoluteScope, model.ScopeSeparator): true,
}

// trainingVariables are the variables in the root scope that only training needs.
var trainingVariables = map[string]bool{
	optimizer.GlobalStepVariableName: true,
	model.RNGStateVariableName:       true,
}

// Owner reports whether the variable at a path belongs to the model. known is false if it doesn't
// know the variable. A nil Owner knows none.
//
// Of a variable that the Owner doesn't know, its name decides. The model's are trainable, or a
// layer's buffers such as the mean of a batch normalization, or frozen. Variables in GoMLX's own
// scopes, and an optimizer's copies of trainable ones, do not belong to the model.
type Owner func(path string) (weight, known bool)

// knows calls the owner, if there is one.
func (o Owner) knows(path string) (weight, known bool) {
	if o == nil {
		return false, false
	}
	return o(path)
}

// weights returns a function that reports whether a variable of the store belongs to the model.
func (o Owner) weights(store *model.Store) func(*model.Variable) bool {
	trainable := map[string]bool{}
	for v := range store.IterVariables() {
		if v.Trainable {
			trainable[v.Path()] = true
		}
	}
	return func(v *model.Variable) bool {
		if weight, known := o.knows(v.Path()); known {
			return weight
		}
		if OnlyTraining(v.Path()) {
			return false
		}
		_, rest, _ := strings.Cut(strings.TrimPrefix(v.Path(), model.ScopeSeparator), model.ScopeSeparator)
		return v.Trainable || !mirrors(model.ScopeSeparator+rest, trainable)
	}
}

// OnlyTraining reports whether only training needs the variable at this path, which is in one of
// GoMLX's own scopes. An optimizer may keep its state in other scopes too.
func OnlyTraining(path string) bool {
	scope, rest, nested := strings.Cut(strings.TrimPrefix(path, model.ScopeSeparator), model.ScopeSeparator)
	return nested && (trainingScopes[scope] || inOptimizerScope(rest)) || !nested && trainingVariables[scope]
}

// misplaced returns an error if a variable is trained, but in a scope of variables that only
// training needs: nothing would take it for a part of the model. The variables of metrics may look
// so after they are loaded.
func misplaced(v *model.Variable) error {
	if !v.Trainable || !OnlyTraining(v.Path()) || randomScope.MatchString(v.Path()) {
		return nil
	}
	for scope := range strings.SplitSeq(v.Scope(), model.ScopeSeparator) {
		if trainingScopes[scope] {
			return fmt.Errorf("the model has the weight %s, but in scopes with the name %q GoMLX keeps what isn't part of a model: give the layer's scope another name", v.Path(), scope)
		}
	}
	return nil
}

// MisplacedIn returns an error if a graph uses a variable in a scope of variables that only
// training needs.
func MisplacedIn(store *model.Store, g *graph.Graph) error {
	for v := range store.IterVariables() {
		if err := misplaced(v); err != nil && v.InUseByGraph(g) {
			return err
		}
	}
	return nil
}

// inOptimizerScope reports whether one of the scopes of a path is an optimizer's: an optimizer that
// trains a part of a model keeps its learning rate inside that part, at "/generator/optimizers".
func inOptimizerScope(path string) bool {
	scopes := strings.Split(path, model.ScopeSeparator)
	scopes = scopes[:len(scopes)-1]
	return slices.Contains(scopes, optimizer.Scope) || slices.Contains(scopes, optimizer.AdamDefaultScope)
}

// mirrors reports whether a path is that of a trainable variable with a suffix, such as
// "/dense/weights_1st_moment": this is how optimizers name, in their own scope, what they keep for
// each variable. The path alone may be that of a frozen copy of the model, which is a weight.
func mirrors(path string, trainable map[string]bool) bool {
	for i := len(path) - 1; i > 0; i-- {
		if trainable[path[:i]] {
			return true
		}
	}
	return false
}

// randomScope matches the scope of a metric, which GoMLX ends with an identifier that differs in
// every process.
var randomScope = regexp.MustCompile(`^(/` + metric.Scope + `/.*_uuid_)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(/.*)?$`)

// renamer gives variables names that are the same in every process: the first metric named Mean
// Loss is /metrics/Mean Loss_uuid_0, the second _uuid_1, in the order of the calls.
type renamer struct {
	numbers map[string]int // By identifier.
	counts  map[string]int // By the name before the identifier.
}

func (r *renamer) stable(path string) string {
	match := randomScope.FindStringSubmatch(path)
	if match == nil {
		return path
	}
	if r.numbers == nil {
		r.numbers, r.counts = map[string]int{}, map[string]int{}
	}
	n, known := r.numbers[match[2]]
	if !known {
		n = r.counts[match[1]]
		r.numbers[match[2]] = n
		r.counts[match[1]]++
	}
	return match[1] + strconv.Itoa(n) + match[3]
}

// isOptional reports whether a variable may be missing on one side although the model is the same:
// the variables of metrics, and sums of gradients over batches, which are zero between two updates.
func isOptional(path string) bool {
	return isMetric(path) || strings.HasPrefix(path, model.ScopeSeparator+train.AccumulatedGradientsScope+model.ScopeSeparator)
}

// isMetric reports whether a variable belongs to a metric. The same model may have it or not.
func isMetric(path string) bool {
	return strings.HasPrefix(path, model.ScopeSeparator+metric.Scope+model.ScopeSeparator)
}
