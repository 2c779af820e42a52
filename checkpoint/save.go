package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint/folder"
)

// WeightsFile is the name of the file in a checkpoint that has the model.
const WeightsFile = "model.safetensors"

// The files of a checkpoint.
const (
	modelFile    = WeightsFile
	trainingFile = "training.safetensors"
	ranksFile    = "ranks.safetensors"
)

// Save writes a snapshot and returns when it is on disk. Then it removes the old checkpoints that
// needn't be kept. The new folder appears complete or not at all. Saving a step again replaces its
// checkpoint.
//
// Save refuses a snapshot that has no weights, or lacks one that the folder's newest checkpoint
// has, with a *LesserError. The folder stays as it is.
func (d *Dir) Save(s *Snapshot) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.options.Check(s); err != nil {
		return fmt.Errorf("checkpoint: step %d is not saved to %s: %w", s.Step, d.path, err)
	}
	files, err := s.files()
	if err == nil {
		err = d.refuseLesser(s)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: save step %d to %s: %w", s.Step, d.path, err)
	}
	draft, err := folder.NewDraft(d.path, s.Step)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := draft.Write(file.name, file.write); err != nil {
			return errors.Join(err, draft.Discard())
		}
	}
	if err := draft.Commit(s.manifest()); err != nil {
		return errors.Join(err, draft.Discard())
	}
	for _, litter := range draft.Litter() {
		d.options.Report(litter.Error())
	}
	delete(d.damaged, draft.Target())
	d.prune(s.Step)
	return nil
}

type file struct {
	name  string
	write func(io.Writer) error
}

// files prepares all files, so that problems are known before anything is written.
func (s *Snapshot) files() ([]file, error) {
	parts := []struct {
		name    string
		tensors map[string]*tensors.Tensor
	}{
		{modelFile, s.part(true)}, {trainingFile, s.part(false)}, {ranksFile, s.ranks()},
	}
	var all []file
	for _, part := range parts {
		if part.name == ranksFile && len(part.tensors) == 0 {
			continue
		}
		write, err := TensorFile(part.tensors, map[string]string{"framework": "gomlx", "step": strconv.FormatInt(s.Step, 10)})
		if err != nil {
			return nil, err
		}
		all = append(all, file{part.name, write})
	}
	return all, nil
}

// part returns the tensors that are weights, or those that aren't.
func (s *Snapshot) part(weights bool) map[string]*tensors.Tensor {
	all := map[string]*tensors.Tensor{}
	for path, t := range s.Tensors {
		if s.Weights[path] == weights {
			all[path] = t
		}
	}
	return all
}

// ranks returns the state of each rank as a tensor of bytes.
func (s *Snapshot) ranks() map[string]*tensors.Tensor {
	all := map[string]*tensors.Tensor{}
	for rank, data := range s.Ranks {
		all[rankPath(rank)] = tensors.FromFlatDataAndDimensions(data, len(data))
	}
	return all
}

func rankPath(rank int) string { return variablePath("rank-" + strconv.Itoa(rank)) }

func (s *Snapshot) manifest() folder.Manifest {
	return folder.Manifest{WorldSize: s.WorldSize, CodeHash: s.CodeHash, Versions: versions(), Metrics: s.Metrics, Progress: s.Progress}
}

// versions returns the versions of Go and of the libraries that determine the meaning of a tensor.
func versions() map[string]string {
	all := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, dep := range info.Deps {
		switch dep.Path {
		case "github.com/gomlx/gomlx", "github.com/gomlx/go-xla", "github.com/gomlx/compute":
			all[dep.Path] = dep.Version
		}
	}
	return all
}
