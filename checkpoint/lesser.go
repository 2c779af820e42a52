package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/checkpoint/safetensors"
)

// LesserError reports that a snapshot has less of the model than the checkpoint that it would
// follow or replace.
type LesserError struct {
	// Newest is the folder's newest checkpoint, or "" if there is none.
	Newest string
	// Missing lists the weights that only Newest has, sorted.
	Missing []string
}

// Error names the first weights that are missing.
func (e *LesserError) Error() string {
	if len(e.Missing) == 0 {
		return "refused: the snapshot has no weights: build the model before it is saved"
	}
	named := strings.Join(e.Missing[:min(len(e.Missing), maxNamed)], ", ")
	if more := len(e.Missing) - maxNamed; more > 0 {
		named = fmt.Sprintf("%s and %d more", named, more)
	}
	return fmt.Sprintf("refused: the snapshot has no %s, which the newest checkpoint, %s, has: save another model to another folder", named, e.Newest)
}

// refuseLesser returns an error if a snapshot lacks weights of the folder's newest checkpoint.
func (d *Dir) refuseLesser(s *Snapshot) error {
	if len(s.Weights) == 0 {
		return &LesserError{}
	}
	newest, names, err := d.newestWeights()
	if err != nil {
		return err
	}
	lesser := &LesserError{Newest: newest}
	for _, name := range names {
		if s.Tensors[name] == nil {
			lesser.Missing = append(lesser.Missing, name)
		}
	}
	if len(lesser.Missing) == 0 {
		return nil
	}
	return lesser
}

// newestWeights returns the folder's newest usable checkpoint, and the names of its weights.
// Damaged checkpoints do not count.
func (d *Dir) newestWeights() (path string, names []string, err error) {
	all, err := List(d.path)
	for _, info := range all {
		if !d.whole(info) {
			continue
		}
		if names, err := weightNames(info.Path); err == nil {
			return info.Path, names, nil
		}
		d.damaged[info.Path] = true
	}
	return "", nil, err
}

// weightNames returns the names of a checkpoint's weights, sorted, without reading their values.
func weightNames(path string) (names []string, err error) {
	f, err := os.Open(filepath.Join(path, modelFile))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	header, err := safetensors.ReadHeader(f, info.Size())
	if err != nil {
		return nil, err
	}
	names = []string{}
	for _, tensor := range header.Tensors {
		names = append(names, variablePath(tensor.Name))
	}
	slices.Sort(names)
	return names, nil
}
