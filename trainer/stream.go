package trainer

import (
	"slices"

	"gonbatch/distributed"
	"gonbatch/trainer/internal/saved"
)

// resumeStream continues a stream where the training stopped.
func (t *Trainer) resumeStream(l distributed.Loader) error {
	if l.Position() == nil { // Not a stream.
		t.at.Stream = nil
		return nil
	}
	if err := t.world.Together(l.Resume(t.at.Epoch, t.at.Batch, t.at.Stream)); err != nil {
		return err
	}
	t.at.Stream = l.Position() // Without those of other ranks.
	return nil
}

// wholeStream returns the positions of all ranks.
func (t *Trainer) wholeStream(mine *distributed.StreamPosition) (*distributed.StreamPosition, error) {
	if mine == nil {
		return nil, nil
	}
	ranks, err := saved.Gather(t.world, mine.At)
	whole := *mine
	whole.At = slices.Concat(ranks...)
	return &whole, err
}
