package trainer

import (
	"encoding/json"

	"gonbatch/data/lane"
	"gonbatch/distributed"
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
	text, err := json.Marshal(mine.At)
	if err != nil {
		return nil, err
	}
	ranks, err := t.world.AllGather(text)
	if err != nil {
		return nil, err
	}
	whole := *mine
	whole.At = nil
	for _, text := range ranks {
		var at []lane.Position
		if err := json.Unmarshal(text, &at); err != nil {
			return nil, err
		}
		whole.At = append(whole.At, at...)
	}
	return &whole, nil
}
