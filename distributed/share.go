package distributed

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"weak"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/data"
	"gonbatch/internal/plural"
)

// ShareVariables sets the variables that it hasn't shared yet to rank 0's values on every rank: the
// initial weights, or those of a checkpoint that was loaded. It is collective. Optimizer and
// AverageGradients call it while the training step is built, which happens at the same point on all
// ranks.
func (w *World) ShareVariables(store *model.Store) error {
	if w.Size() == 1 {
		return nil
	}
	if err := store.InitializeVariables(w.backend, nil); err != nil {
		return fmt.Errorf("distributed: initialize the variables of rank %d: %w", w.Rank(), err)
	}
	w.shared.forget()
	var fresh []*model.Variable
	for v := range store.IterVariables() {
		if !w.shared.has(v) && !isOwn(v) {
			fresh = append(fresh, v)
		}
	}
	if err := w.checkSameModel(fresh); err != nil {
		return err
	}
	for _, v := range fresh {
		if err := w.shareVariable(v); err != nil {
			return fmt.Errorf("distributed: broadcast the variable %s: %w", v.Path(), err)
		}
		w.shared.add(v)
	}
	return nil
}

// ShareModel builds the trainer's model on every rank by evaluating the first example of a dataset,
// and shares its variables. Call it to evaluate before a training step was built: the ranks' parts
// of a dataset differ in shape, so the ranks would build different programs. It is collective.
func (w *World) ShareModel(ctx context.Context, trainer Evaluator, ds data.Dataset) error {
	_, err := w.evaluatePart(ctx, trainer, part{data: ds, begin: 0, end: 1, batchSize: 1})
	if err := w.EndTogether(err); err != nil {
		return fmt.Errorf("distributed: build the model by evaluating example 0 of %s: %w", ds.Name(), err)
	}
	return w.ShareVariables(trainer.Store())
}

// variables is a set of variables. It doesn't keep them in memory, because a program may train many
// models, one after the other.
type variables map[weak.Pointer[model.Variable]]struct{}

func (s variables) has(v *model.Variable) bool {
	_, ok := s[weak.Make(v)]
	return ok
}

func (s variables) add(v *model.Variable) { s[weak.Make(v)] = struct{}{} }

// forget removes the variables that no longer exist.
func (s variables) forget() {
	maps.DeleteFunc(s, func(p weak.Pointer[model.Variable], _ struct{}) bool { return p.Value() == nil })
}

func (w *World) shareVariable(v *model.Variable) error {
	value, err := v.Value()
	if err != nil {
		return err
	}
	isRandomState := v.Name() == model.RNGStateVariableName
	var sent []byte
	var sendErr error
	err = value.MutableBytes(func(data []byte) {
		sendErr = w.peers.Broadcast(data, 0)
		if isRandomState {
			sent = slices.Clone(data)
		}
	})
	if err == nil {
		err = sendErr
	}
	if err == nil && w.Devices() == 1 { // Otherwise a program divides it.
		err = w.toDevice(value)
	}
	if err != nil || !isRandomState || w.IsMain() {
		return err
	}
	// Otherwise all ranks would drop the same units.
	return v.SetValue(tensors.FromValue(randomState(sent, w.Rank())))
}

// randomState returns a rank's own state of the random numbers, a key and a counter, of rank 0's. A
// hash makes the keys of many ranks different: GoMLX makes a state of a seed of 31 bits, which two
// of 100,000 ranks are likely to share.
func randomState(ofMain []byte, rank int) []uint64 {
	hash := sha256.Sum256(binary.LittleEndian.AppendUint64(slices.Clone(ofMain), uint64(rank)))
	state := make([]uint64, graph.RNGStateShape.Size())
	for i := range state {
		state[i] = binary.LittleEndian.Uint64(hash[8*i:])
	}
	return state
}

// checkSameModel verifies that all ranks have variables with the same names and shapes.
func (w *World) checkSameModel(variables []*model.Variable) error {
	hash := fnv.New64a()
	for _, v := range variables {
		fmt.Fprintln(hash, v.Path(), v.Shape())
	}
	mine := binary.LittleEndian.AppendUint64(nil, hash.Sum64())
	all, err := w.peers.AllGather(mine)
	if err != nil {
		return fmt.Errorf("distributed: compare the model over the ranks: %w", err)
	}
	for rank, other := range all {
		if !slices.Equal(other, all[0]) {
			return w.explainModel(rank, variables)
		}
	}
	return nil
}

// explainModel names the first variable in which a rank's model differs from that of rank 0. It is
// collective.
func (w *World) explainModel(rank int, variables []*model.Variable) error {
	var mine strings.Builder
	for _, v := range variables {
		fmt.Fprintln(&mine, v.Path(), v.Shape())
	}
	all, err := w.AllGather([]byte(mine.String()))
	if err != nil {
		return err
	}
	theirs, main := slices.Collect(strings.Lines(string(all[rank]))), slices.Collect(strings.Lines(string(all[0])))
	i := 0
	for i < min(len(theirs), len(main)) && theirs[i] == main[i] {
		i++
	}
	at := func(lines []string) string {
		if i < len(lines) {
			return strings.TrimSpace(lines[i])
		}
		return "missing"
	}
	advice := ""
	if slices.Equal(slices.Sorted(slices.Values(theirs)), slices.Sorted(slices.Values(main))) {
		advice = "; they are the same in another order, such as that of a map, which Go changes each time: sort its keys"
	}
	return fmt.Errorf("distributed: rank %d built a different model than rank 0 (%s against %d): the first that differs is %s there, and %s on rank 0%s: all ranks must build the same model",
		rank, plural.Of(len(theirs), "variable"), len(main), at(theirs), at(main), advice)
}
