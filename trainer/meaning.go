package trainer

import (
	"fmt"
	"slices"

	"gonbatch/data"
)

// meaning says what the numbers of a training set are, as far as it knows.
type meaning struct {
	Set     string   `json:"set"`
	Inputs  []string `json:"inputs,omitempty"` // Columns.
	Labels  []string `json:"labels,omitempty"` // Columns, too.
	Classes []string `json:"classes,omitempty"`
}

func meaningOf(ds data.Dataset) meaning {
	m := meaning{Set: ds.Name(), Classes: data.Classes(ds)}
	m.Inputs, m.Labels = data.Columns(ds)
	return m
}

// check returns an error if the inputs or the labels of a dataset mean something else than those of
// the training set. It may lack the last classes.
func (m meaning) check(ds data.Dataset) error {
	if err := m.checkInputs(ds); err != nil {
		return err
	}
	other := meaningOf(ds)
	if err := m.compare("label columns", other.Labels, m.Labels); err != nil {
		return err
	}
	if n := len(other.Classes); n < len(m.Classes) && slices.Equal(other.Classes, m.Classes[:n]) {
		return nil
	}
	return m.compare("classes", other.Classes, m.Classes)
}

// checkInputs is check of the inputs alone.
func (m meaning) checkInputs(ds data.Dataset) error {
	return m.compare("input columns", meaningOf(ds).Inputs, m.Inputs)
}

func (m meaning) compare(what string, own, trained []string) error {
	if len(own) == 0 || len(trained) == 0 || slices.Equal(own, trained) {
		return nil
	}
	return fmt.Errorf("it has the %s %q, and the training set %s has %q: give both the same, in the same order (in the set's Config)", what, own, m.Set, trained)
}

// sameOrder refuses names of classes that are a set's own in another order. Other names may be for
// people.
func sameOrder(names, own []string) error {
	if !slices.Equal(names, own) && slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(own))) {
		return fmt.Errorf("the classes %q are those of the set in another order: it has %q", names, own)
	}
	return nil
}

// checkMeanings checks the validation sets of a training.
func (t *Trainer) checkMeanings(training meaning, validation data.Dataset) error {
	for _, v := range append([]validationSet{{data: validation}}, t.further...) {
		if v.data == nil {
			continue
		}
		if err := training.check(v.data); err != nil {
			return fmt.Errorf("the validation set %s: %w", v.data.Name(), err)
		}
	}
	return nil
}
