package checkpoint

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// trainingScopes are the top scopes in which GoMLX keeps what only training needs.
var trainingScopes = map[string]bool{
	optimizer.Scope:                 true,
	optimizer.AdamDefaultScope:      true,
	metric.Scope:                    true,
	train.AccumulatedGradientsScope: true,
	strings.Trim(train.TrainerAbsoluteScope, model.ScopeSeparator): true,
}

// trainingVariables are the variables of the root scope that only training needs.
var trainingVariables = map[string]bool{
	optimizer.GlobalStepVariableName: true,
	model.RNGStateVariableName:       true,
}

// weights returns a function that says whether a variable is the model's: trainable, or a buffer of
// a layer such as a batch normalisation's mean, or frozen. Not the model's are those in GoMLX's own
// scopes, and an optimizer's copies of trainable ones.
func weights(store *model.Store) func(*model.Variable) bool {
	trainable := map[string]bool{}
	for v := range store.IterVariables() {
		if v.Trainable {
			trainable[v.Path()] = true
		}
	}
	return func(v *model.Variable) bool {
		if inTrainingScope(v.Path()) {
			return false
		}
		_, rest, _ := strings.Cut(strings.TrimPrefix(v.Path(), model.ScopeSeparator), model.ScopeSeparator)
		return v.Trainable || !mirrors(model.ScopeSeparator+rest, trainable)
	}
}

// inTrainingScope says whether GoMLX keeps at this path what only training needs.
func inTrainingScope(path string) bool {
	scope, rest, nested := strings.Cut(strings.TrimPrefix(path, model.ScopeSeparator), model.ScopeSeparator)
	return nested && (trainingScopes[scope] || inOptimizerScope(rest)) || !nested && trainingVariables[scope]
}

// inOptimizerScope says whether one of the scopes of a path is an optimizer's: one that trains a
// part of a model keeps its learning rate inside that part, at "/generator/optimizers".
func inOptimizerScope(path string) bool {
	scopes := strings.Split(path, model.ScopeSeparator)
	scopes = scopes[:len(scopes)-1]
	return slices.Contains(scopes, optimizer.Scope) || slices.Contains(scopes, optimizer.AdamDefaultScope)
}

// mirrors says whether a path is that of a trainable variable with something behind it, as
// "/dense/weights_1st_moment" is: the way in which optimizers name, in a scope of their own, what
// they keep for each. The path alone may be that of a frozen copy of the model, which is a weight.
func mirrors(path string, trainable map[string]bool) bool {
	for i := len(path) - 1; i > 0; i-- {
		if trainable[path[:i]] {
			return true
		}
	}
	return false
}

// randomScope matches the scope of a metric, which GoMLX ends with an identifier that is new in
// every process.
var randomScope = regexp.MustCompile(`^(/` + metric.Scope + `/.*_uuid_)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(/.*)?$`)

// renamer gives variables names that hold in every process: the first metric named Mean Loss is
// /metrics/Mean Loss_uuid_0, the second _uuid_1, in the order in which they are asked for.
type renamer struct {
	numbers map[string]int // By identifier.
	counts  map[string]int // By the name in front of it.
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

// isOptional says whether a variable may be missing on one side without being another model: those
// of metrics, and sums of gradients over batches, which are zero between two updates.
func isOptional(path string) bool {
	return isMetric(path) || strings.HasPrefix(path, model.ScopeSeparator+train.AccumulatedGradientsScope+model.ScopeSeparator)
}

// isMetric says whether a variable is a metric's: one that a program may have or not, without being
// another model.
func isMetric(path string) bool {
	return strings.HasPrefix(path, model.ScopeSeparator+metric.Scope+model.ScopeSeparator)
}
