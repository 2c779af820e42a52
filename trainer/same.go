package trainer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonbatch/data"
)

// facts describe what a rank is about to do, by names for people.
type facts map[string]string

// trainingFacts returns what must be the same on all ranks that train together: a rank with another
// setting, optimizer or dataset would compute other updates.
func (t *Trainer) trainingFacts(training, validation data.Dataset) facts {
	all := facts{"the program (its SHA-256)": codeHash()}
	params := t.config.params(t.ownSchedule())
	for _, o := range t.task.objectives {
		maps.Copy(params, optimizerParams(o))
		params[paramName(o, "scope")] = o.Scope
	}
	maps.Copy(params, t.scopeParams())
	delete(params, "loggers") // Only rank 0 has any.
	for name, value := range params {
		all[name] = fmt.Sprint(value)
	}
	all.add("training set", training)
	if validation != nil {
		all.add("validation set", validation)
	}
	for _, v := range t.further {
		all.add("validation set "+v.name, v.data)
	}
	return all
}

// add adds a dataset.
func (f facts) add(what string, ds data.Dataset) {
	f["the number of examples of the "+what] = fmt.Sprint(ds.Len())
	f["the fingerprint of the "+what] = data.Fingerprint(ds)
}

// factsOf returns those of a dataset that all ranks use together.
func factsOf(ds data.Dataset) facts {
	all := facts{}
	all.add("dataset", ds)
	return all
}

// together returns an error on all ranks if their facts differ. It is collective.
func (t *Trainer) together(of func() facts) error {
	if t.world.Size() == 1 {
		return nil
	}
	type rank struct {
		Host  string
		Facts facts
	}
	text, err := json.Marshal(rank{hostname(), of()})
	if err != nil {
		return err
	}
	texts, err := t.world.AllGather(text)
	if err != nil {
		return err
	}
	ranks := make([]rank, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &ranks[i]); err != nil {
			return err
		}
		if differences := ranks[i].Facts.differences(ranks[0].Facts, fmt.Sprintf("rank %d on %s", i, ranks[i].Host), "rank 0 on "+ranks[0].Host); differences != nil {
			return fmt.Errorf("the ranks don't do the same: %s", strings.Join(differences, "; "))
		}
	}
	return nil
}

// differences lists the facts that differ between two ranks, by name.
func (f facts) differences(others facts, mine, theirs string) (all []string) {
	names := maps.Clone(f)
	maps.Copy(names, others)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if f[name] != others[name] {
			all = append(all, fmt.Sprintf("%s is %s on %s, and %s on %s", name, orNone(f[name]), mine, orNone(others[name]), theirs))
		}
	}
	return all
}

// orNone shows a fact, which may be missing.
func orNone(fact string) string {
	if fact == "" {
		return "not set"
	}
	return fact
}
