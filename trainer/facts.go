package trainer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gonbatch/data"
	"gonbatch/trainer/internal/saved"
)

// facts describe what a rank is about to do, by names for people.
type facts map[string]string

// settingFacts returns the settings of the trainer, its optimizers and options.
func (t *Trainer) settingFacts() facts {
	all := facts{}
	params := t.config.params(t.ownSchedule())
	for _, o := range t.task.objectives {
		own := optimizerParams(o)
		if pkg := plain(reflect.TypeOf(o.Optimizer)).PkgPath(); !strings.HasPrefix(pkg, "gonbatch/") && !strings.HasPrefix(pkg, "github.com/gomlx/") {
			own = map[string]any{paramName(o, "optimizer"): fmt.Sprintf("%T", o.Optimizer)} // Its fields may be anything, such as counters.
		}
		maps.Copy(params, own)
		params[paramName(o, "scope")] = o.Scope
	}
	maps.Copy(params, t.scopeParams())
	delete(params, "loggers") // Only rank 0 has any.
	for name, value := range params {
		all[name] = fmt.Sprint(value)
	}
	return all
}

// identity returns what a training with these settings is: a change makes other weights of it.
// Limits, validations, reports and checkpoints only change how far it gets, or what is known of it.
func (f facts) identity() facts {
	own := maps.Clone(f)
	maps.DeleteFunc(own, func(name, _ string) bool {
		first, _, _ := strings.Cut(name, ".")
		return slices.Contains(notIdentity, first)
	})
	return own
}

// notIdentity are the settings, or the groups of them, that are no part of a training's identity.
var notIdentity = []string{
	"name", "max_epochs", "max_steps", "max_time", "min_epochs", "min_steps", "eval_batch_size", "limit_val_batches", "limit_test_batches", "limit_predict_batches",
	"val_check_interval", "check_val_every_n_epoch", "strategy", "model_parallel", "deterministic", "log_every", "log_histograms_every", "early_stopping", "checkpoint",
}

// setFacts returns those of a dataset.
func setFacts(what string, ds data.Dataset) facts {
	all := facts{"the number of examples of the " + what: fmt.Sprint(ds.Len()), fingerprintOf(what): data.Fingerprint(ds)}
	m := meaningOf(ds)
	for name, list := range map[string][]string{"input columns": m.Inputs, "label columns": m.Labels, "classes": m.Classes} {
		if len(list) > 0 {
			all["the list of the "+what+"'s "+name] = fmt.Sprintf("%q", list)
		}
	}
	return all
}

func fingerprintOf(what string) string { return "the fingerprint of the " + what }

// ranksAgree returns an error on all ranks if what they are about to do differs: a rank with
// another setting, optimizer or dataset would compute other updates. It is collective, and returns
// the identity of the training.
func (t *Trainer) ranksAgree(training, validation data.Dataset) (identity facts, err error) {
	all := t.settingFacts()
	maps.Copy(all, setFacts(trainingSet, training))
	identity = all.identity()
	if t.world.Size() == 1 {
		return identity, nil
	}
	all["the program (its SHA-256)"] = codeHash()
	if validation != nil {
		maps.Copy(all, setFacts("validation set", validation))
	}
	for _, v := range t.further {
		maps.Copy(all, setFacts("validation set "+v.name, v.data))
	}
	return identity, t.sameOnRanks(all)
}

// trainingSet is what facts call it.
const trainingSet = "training set"

// ranksHave returns an error on all ranks if they don't have the same dataset. It is collective.
func (t *Trainer) ranksHave(ds data.Dataset) error {
	if t.world.Size() == 1 {
		return nil
	}
	return t.sameOnRanks(setFacts("dataset", ds))
}

// sameOnRanks returns an error on all ranks if their facts differ. It is collective.
func (t *Trainer) sameOnRanks(mine facts) error {
	type rank struct {
		Host  string
		Facts facts
	}
	ranks, err := saved.Gather(t.world, rank{hostname(), mine})
	if err != nil {
		return err
	}
	for i, other := range ranks {
		if differences := other.Facts.differences(ranks[0].Facts, fmt.Sprintf(" on rank %d on %s", i, other.Host), "is %s on rank 0 on "+ranks[0].Host); differences != "" {
			return fmt.Errorf("the ranks don't do the same: %s: give all of them the same program, settings and datasets", differences)
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

// codeHash returns the SHA-256 of this program, or "" if it can't be read.
var codeHash = sync.OnceValue(func() string {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil))
})
