package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// CheckpointFile is in every finished checkpoint. Package checkpoint defines the other files.
const CheckpointFile = "checkpoint.json"

// imageEndings are the extensions of the image files in a run.
var imageEndings = []string{".png", ".jpg", ".jpeg", ".svg", ".gif"}

// CheckpointFolders returns the folders of the run's checkpoints, by training, the newest last.
func (d Dir) CheckpointFolders() ([]string, error) {
	return d.below(d.Checkpoints(), func(path string) (found string) {
		if filepath.Base(path) == CheckpointFile {
			return filepath.Dir(path)
		}
		return ""
	})
}

// ImageFiles returns the run's drawn metrics and sample images.
func (d Dir) ImageFiles() ([]string, error) {
	return d.below(d.Curves(), func(path string) (found string) {
		if slices.Contains(imageEndings, strings.ToLower(filepath.Ext(path))) {
			return path
		}
		return ""
	})
}

// below collects the results of want for the files in a folder. It skips hidden files, which are
// being written. A missing folder has no files.
func (d Dir) below(folder string, want func(path string) (found string)) ([]string, error) {
	var all []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // The run is removing old checkpoints.
		case err != nil:
			return err
		case strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.Type().IsRegular():
			if found := want(path); found != "" {
				all = append(all, found)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("files of the run %s: %w", d.Name(), err)
	}
	slices.Sort(all)
	return all, nil
}

// ReadJSON reads a JSON file. Its errors name the file.
func ReadJSON(path string, into any) error {
	text, err := ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// WriteJSON atomically writes a JSON file that only its owner can read.
func WriteJSON(path string, value any) error {
	text, err := jsonText(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFileAtomic(path, text, 0o600)
}

// jsonText encodes a value as JSON that is readable for people too.
func jsonText(value any) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	return append(text, '\n'), err
}
