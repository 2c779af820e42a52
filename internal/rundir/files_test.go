package rundir_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
)

func TestFiles(t *testing.T) {
	dir := rundir.At(t.TempDir())
	for _, list := range []func() ([]string, error){dir.CheckpointFolders, dir.ImageFiles} {
		if found, err := list(); err != nil || len(found) != 0 {
			t.Errorf("an empty run has %v, %v", found, err)
		}
	}
	for _, name := range []string{
		"checkpoints/train/step-00000020/checkpoint.json", "checkpoints/train/step-00000020/model.safetensors",
		"checkpoints/train/step-00000003/checkpoint.json", "checkpoints/gan/g/step-00000001/checkpoint.json",
		"checkpoints/train/.step-00000030-123/checkpoint.json", "checkpoints/train/step-00000040/model.safetensors",
		"curves/loss.png", "curves/.loss.png-77", "curves/images/samples/step-00000005.PNG", "curves/notes.txt",
	} {
		path := filepath.Join(dir.Path(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("step-00000020", filepath.Join(dir.Checkpoints(), "train", "best")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		list func() ([]string, error)
		want []string
	}{
		{"checkpoints", dir.CheckpointFolders, []string{"checkpoints/gan/g/step-00000001", "checkpoints/train/step-00000003", "checkpoints/train/step-00000020"}},
		{"images", dir.ImageFiles, []string{"curves/images/samples/step-00000005.PNG", "curves/loss.png"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := tt.list()
			for i := range found {
				found[i] = strings.TrimPrefix(found[i], dir.Path()+"/")
			}
			if err != nil || !slices.Equal(found, tt.want) {
				t.Errorf("%v, %v; want %v", found, err, tt.want)
			}
		})
	}
}
