package trainer

import (
	"fmt"
	"regexp"

	"gonbatch/data"
)

// validationSet is a validation set besides the one of Fit.
type validationSet struct {
	name string
	data data.Dataset
}

// WithValidation adds a validation set to the one of Fit: each validation during Fit also computes
// the metrics over it, under names such as "val_night/loss" for the name "night", which can be
// monitored.
func WithValidation(name string, ds data.Dataset) Option {
	return func(o *chosen) { o.further = append(o.further, validationSet{name, ds}) }
}

// valStage begins the names of the metrics of validations.
const valStage = "val"

func (v validationSet) stage() string { return valStage + "_" + v.name }

var validationName = regexp.MustCompile(`^[a-z0-9_]+$`)

func checkValidations(sets []validationSet) error {
	seen := map[string]bool{}
	for _, v := range sets {
		switch {
		case !validationName.MatchString(v.name):
			return fmt.Errorf("the validation set %q: its name must have small letters, digits and _ only", v.name)
		case seen[v.name]:
			return fmt.Errorf("two validation sets are called %q", v.name)
		case v.data == nil:
			return fmt.Errorf("the validation set %q is nil", v.name)
		}
		seen[v.name] = true
	}
	return nil
}
