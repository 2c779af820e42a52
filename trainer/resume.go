package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"gonbatch/checkpoint"
	"gonbatch/data"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/trainer/internal/saved"
)

// origin is what the other ranks must know about the checkpoint that rank 0 has read.
type origin struct {
	Found     bool
	Path      string
	At        position
	WorldSize int
	CodeHash  string
	Ranks     [][]byte
}

// errNoFolder means that checkpoint.resume is "must", but there is no folder to look in.
var errNoFolder = errors.New("checkpoint.resume is \"must\", but there is no folder of checkpoints: set checkpoint.dir")

// resume resumes the training from the newest checkpoint, once in a trainer's life.
func (t *Trainer) resume(identity facts) error {
	if t.life >= resumed {
		return nil
	}
	if t.config.Checkpoint.Resume == "auto" {
		if err := t.folder.Claim(); err != nil {
			return err
		}
	}
	if err := t.startOver(); err != nil {
		return err
	}
	if err := t.load(); err != nil {
		return err
	}
	t.folder.Note()
	if err := t.world.OnMain(func() error {
		return errors.Join(t.folder.CheckOrigin(t.env.Env, t.config.Name, t.origin.Path, t.origin.At.By), t.noteTraining())
	}); err != nil {
		return err
	}
	if !t.origin.Found {
		if t.hadOwn && len(t.initial) == 0 {
			t.printf("%sthe training begins with the weights that are in its store already: for new ones, use another store\n", t.label())
		}
		t.life = resumed
		return nil
	}
	if err := t.comparePosition(t.origin.At); err != nil {
		return fmt.Errorf("%s: %w", t.origin.Path, err)
	}
	if err := t.takeUp(t.origin, identity); err != nil {
		return err
	}
	t.life = resumed
	return nil
}

// startOver moves the checkpoints of another training run out of the way if this one must not
// resume it.
func (t *Trainer) startOver() error {
	if t.folder == nil || !t.config.startsOver(t.env) {
		return nil
	}
	return t.world.OnMain(t.setAside)
}

// setAside does rank 0's part of startOver.
func (t *Trainer) setAside() error {
	aside, err := t.folder.Dir.SetAside()
	if aside != "" {
		t.printf("checkpoint.resume is \"never\": the checkpoints of an earlier training run are now in %s\n", aside)
	}
	return err
}

// startsOver reports whether to ignore existing checkpoints. Those of an earlier start of the same
// job always count.
func (c Config) startsOver(env environment) bool {
	return c.Checkpoint.Resume == "never" && env.Start <= 1
}

// load puts the values of the newest valid checkpoint into the store, once in a trainer's life.
// Rank 0 reads the checkpoint and sends it to the others.
func (t *Trainer) load() error {
	if t.folder == nil || t.looked || t.config.startsOver(t.env) {
		if t.folder == nil && t.config.Checkpoint.Resume == "must" {
			return errNoFolder
		}
		return nil
	}
	var from origin
	if err := t.world.OnMain(func() (err error) { from, err = t.readOrigin(); return err }); err != nil {
		return fmt.Errorf("resume from %s: %w", t.folder.Path, err)
	}
	from, err := saved.Broadcast(t.world, from)
	if err != nil {
		return err
	}
	if !from.Found {
		if t.config.Checkpoint.Resume == "must" {
			return fmt.Errorf("checkpoint.resume is \"must\", but there is no valid checkpoint in %s", t.folder.Path)
		}
		t.looked = true
		return nil
	}
	if err := t.comparePrecision(from.At); err != nil {
		return fmt.Errorf("%s: %w", from.Path, err)
	}
	if t.snapshot, err = saved.Share(t.world, t.snapshot); err != nil {
		return err
	}
	if err := t.step.Resume(t.snapshot, from.At.State); err != nil {
		return fmt.Errorf("%s: %w", from.Path, err)
	}
	t.matchAverages(t.snapshot)
	t.matchLossScale(t.snapshot)
	if err := t.snapshot.Restore(t.store, t.rates.paths()...); err != nil {
		return err
	}
	t.origin, t.looked, t.means = from, true, from.At.Means
	return nil
}

// readOrigin does rank 0's part of load.
func (t *Trainer) readOrigin() (origin, error) {
	snapshot, err := t.folder.Dir.Latest(func(message string) { t.printf("checkpoint: %s\n", message) })
	if err != nil || snapshot == nil {
		return origin{}, err
	}
	from, err := originOf(snapshot)
	if err != nil {
		return origin{}, err
	}
	if t.config.Checkpoint.Resume == "never" && from.At.Run != t.env.RunName() {
		return origin{}, t.setAside() // The job's first start ended before it could do this.
	}
	t.snapshot = snapshot
	return from, nil
}

// originOf describes a trainer's checkpoint.
func originOf(snapshot *checkpoint.Snapshot) (origin, error) {
	from := origin{Found: true, Path: snapshot.Path, WorldSize: snapshot.WorldSize, CodeHash: snapshot.CodeHash, Ranks: snapshot.Ranks}
	progress, ok := snapshot.Progress[saved.Key]
	if !ok {
		return origin{}, fmt.Errorf("%s is not a checkpoint of a trainer: use another checkpoint.dir", snapshot.Path)
	}
	if err := json.Unmarshal(progress, &from.At); err != nil {
		return origin{}, fmt.Errorf("%s: %w", snapshot.Path, err)
	}
	return from, nil
}

// noteTraining records in the run that this cell trains. Only rank 0 calls it.
func (t *Trainer) noteTraining() error {
	if t.folder == nil || !t.env.InRun() || t.env.Cell == "" {
		return nil
	}
	return rundir.MarkTrained(t.env.Dir, t.env.Cell)
}

// takeUp continues from the position of a checkpoint whose values are in the store.
func (t *Trainer) takeUp(from origin, identity facts) error {
	t.at = from.At
	t.at.Restarts++
	t.rates.base = from.At.BaseRates
	if t.rates.base == nil {
		t.rates.base = checkpoint.Metrics{}
	}
	if c, ok := t.plateaus(); ok {
		t.rates.reduced = t.at.Plateau.factor(c)
	}
	t.at.Since = divided(from.At.Since, from.WorldSize)
	maps.Copy(t.metrics, from.At.Metrics)
	if !t.stillEnded() {
		t.at.End, t.at.Finished = nil, false // It was not over, or its limits were raised.
	}
	if err := t.compareIdentity(from, identity); err != nil {
		return err
	}
	if t.at.Finished {
		at := t.at
		t.saved = &at
	}
	if !t.randoms.Resume(from.Ranks, from.WorldSize, t.world) {
		t.printf("the checkpoint is of %s, this is a job of %d: the order of the examples stays the same, random numbers of the model do not\n", plural.Of(from.WorldSize, "rank"), t.world.Size())
	}
	t.sayBuild(from)
	if e := t.at.End; e != nil {
		t.printf("%straining was finished after step %d, %s (%s), from %s\n", t.label(), t.at.Step, plural.Of(t.at.Epoch, "epoch"), e.Reason, from.Path)
		if t.ofCode() {
			t.printf("to train it again, change the program, or set Checkpoint.Resume to \"never\", as for files that have changed: " +
				"only the program, its arguments, %%env, values of %%keep and the training set are compared\n")
		}
	} else {
		t.printf("%straining resumes after step %d, epoch %d, from %s\n", t.label(), t.at.Step, t.at.Epoch+1, from.Path)
		t.sayAverages()
	}
	return t.restoreCallbacks(from.At.Callbacks)
}

// ofCode reports whether the folder of checkpoints is the kernel's, which belongs to the program's
// code.
func (t *Trainer) ofCode() bool {
	return t.folder != nil && t.env.Checkpoints != "" && strings.HasPrefix(t.folder.Path, t.env.Checkpoints+string(filepath.Separator))
}

// sayBuild prints that a checkpoint is of another build of the program.
func (t *Trainer) sayBuild(from origin) {
	if hash := codeHash(); !t.ofCode() && from.CodeHash != "" && hash != "" && from.CodeHash != hash {
		t.printf("the checkpoint is of another build of this program\n")
	}
}

// restoreAll creates, after a training run without a step, the store's variables that no graph has
// asked for.
func (t *Trainer) restoreAll() error {
	if t.snapshot == nil {
		return nil
	}
	if err := t.snapshot.Create(t.store); err != nil {
		return err
	}
	t.step.KeepParts()
	_, err := t.randoms.Set() // The snapshot has rank 0's.
	return err
}

// ready gives the model its weights before it is used without a step of training: the newest
// checkpoint's, or else the initial ones. All ranks get the same weights. The dataset's first
// example shows the model the shapes of its inputs; ds is nil for a model that is built later.
func (t *Trainer) ready(ctx context.Context, ds data.Dataset) error {
	if t.step.Built || t.isShared {
		return nil
	}
	if err := t.load(); err != nil {
		return err
	}
	if t.life < resumed {
		t.sayWeights()
	}
	if ds == nil || t.world.Size() == 1 {
		return nil
	}
	t.isShared = true
	if err := t.world.ShareModel(ctx, t.step.Evaluation, ds); err != nil {
		return err
	}
	return t.randoms.Restore()
}

// sayWeights prints, once, which weights the model has if it is used before Fit.
func (t *Trainer) sayWeights() {
	switch {
	case t.said:
	case t.origin.Found:
		t.printf("%s: the weights are those after step %d, from %s\n", t.config.Name, t.origin.At.Step, t.origin.Path)
	case len(t.initial) > 0:
		t.printf("%s: the weights are those with which the training begins: Fit has not been called, and there is no checkpoint to load\n", t.config.Name)
	case t.hadOwn:
		t.printf("%s: the weights are those in the store: Fit has not been called, and there is no checkpoint to load\n", t.config.Name)
	default:
		t.printf("%s: the weights are the initial ones: Fit has not been called, and there is no checkpoint to load\n", t.config.Name)
	}
	t.said = true
}

// checkModel returns an error if the model, once used, and the checkpoint don't have the same
// variables.
func (t *Trainer) checkModel() error {
	if err := t.checkInitial(); err != nil {
		return err
	}
	if t.snapshot == nil {
		return nil
	}
	return t.snapshot.CheckModel(t.store)
}

// checkUsed is checkModel for a graph that may be only part of the model, such as a GAN's
// generator.
func (t *Trainer) checkUsed() error {
	if t.snapshot == nil {
		return nil
	}
	return t.snapshot.CheckUsed(t.store)
}

// checkRestored returns an error if the model, once built, and the checkpoint don't have the same
// variables.
func (t *Trainer) checkRestored() error {
	if t.snapshot == nil {
		return nil
	}
	err := t.snapshot.Check(t.store, t.added...)
	t.snapshot = nil
	return err
}
