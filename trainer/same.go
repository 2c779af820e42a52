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
	all := t.settingFacts()
	all["the program (its SHA-256)"] = codeHash()
	all.add("training set", training)
	if validation != nil {
		all.add("validation set", validation)
	}
	for _, v := range t.further {
		all.add("validation set "+v.name, v.data)
	}
	return all
}

// settingFacts returns the settings of the trainer, its optimizers and options.
func (t *Trainer) settingFacts() facts {
	all := facts{}
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
	return all
}

// identity returns what a training is: a change makes other weights of it. Limits, validations,
// reports and checkpoints only change how far it gets, or what is known of it.
func (t *Trainer) identity(training data.Dataset) facts {
	all := t.settingFacts()
	maps.DeleteFunc(all, func(name, _ string) bool {
		first, _, _ := strings.Cut(name, ".")
		return slices.Contains(notIdentity, first)
	})
	all.add("training set", training)
	return all
}

// notIdentity are the settings, or the groups of them, that are no part of a training's identity.
var notIdentity = []string{
	"name", "max_epochs", "max_steps", "max_time", "min_epochs", "min_steps", "eval_batch_size", "limit_val_batches", "limit_test_batches", "limit_predict_batches",
	"val_check_interval", "check_val_every_n_epoch", "strategy", "model_parallel", "deterministic", "log_every", "log_histograms_every", "early_stopping", "checkpoint",
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
		if differences := ranks[i].Facts.differences(ranks[0].Facts, fmt.Sprintf(" on rank %d on %s", i, ranks[i].Host), "is %s on rank 0 on "+ranks[0].Host); differences != "" {
			return fmt.Errorf("the ranks don't do the same: %s", differences)
		}
	}
	return nil
}

// differences lists the facts that differ from others, by name: "NAME is VALUE mine, and VALUE
// theirs", where theirs is a format; "" if there is none.
func (f facts) differences(others facts, mine, theirs string) string {
	names := maps.Clone(f)
	maps.Copy(names, others)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if f[name] != others[name] {
			all = append(all, fmt.Sprintf("%s is %s%s, and "+theirs, name, orNone(f[name]), mine, orNone(others[name])))
		}
	}
	return strings.Join(all, "; ")
}

// orNone shows a fact, which may be missing.
func orNone(fact string) string {
	if fact == "" {
		return "not set"
	}
	return fact
}
