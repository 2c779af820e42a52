package logger

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/big"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"gonbatch/internal/rundir"
)

// The file store's names, and its codes of a run's status and source.
const (
	mlflowMeta = "meta.yaml"

	mlflowRunning   = 1
	mlflowFinished  = 3
	mlflowLocalJob  = 4
	mlflowActive    = "active"
	mlflowDefault   = "Default"
	mlflowDefaultID = "0"
)

// mlflowFolder is a run in the file store of MLflow: FOLDER/EXPERIMENT/RUN with meta.yaml, params, metrics, tags, artifacts.
type mlflowFolder struct {
	folder string // of the run
	meta   mlflowRunMeta
}

type mlflowExperimentMeta struct {
	ArtifactLocation string `yaml:"artifact_location"`
	CreationTime     int64  `yaml:"creation_time"`
	ExperimentID     string `yaml:"experiment_id"`
	LastUpdateTime   int64  `yaml:"last_update_time"`
	LifecycleStage   string `yaml:"lifecycle_stage"`
	Name             string `yaml:"name"`
}

type mlflowRunMeta struct {
	ArtifactURI    string   `yaml:"artifact_uri"`
	EndTime        *int64   `yaml:"end_time"`
	EntryPointName string   `yaml:"entry_point_name"`
	ExperimentID   string   `yaml:"experiment_id"`
	LifecycleStage string   `yaml:"lifecycle_stage"`
	RunID          string   `yaml:"run_id"`
	RunName        string   `yaml:"run_name"`
	RunUUID        string   `yaml:"run_uuid"`
	SourceName     string   `yaml:"source_name"`
	SourceType     int      `yaml:"source_type"`
	SourceVersion  string   `yaml:"source_version"`
	StartTime      int64    `yaml:"start_time"`
	Status         int      `yaml:"status"`
	Tags           []string `yaml:"tags"`
	UserID         string   `yaml:"user_id"`
}

func openMLflowFolder(root string, o MLflowOptions) (*mlflowFolder, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if o.RunID != "" {
		return resumeMLflowFolder(root, o.RunID)
	}
	experiment, err := mlflowExperiment(root, o.Experiment, time.Now())
	if err != nil {
		return nil, fmt.Errorf("experiment %q: %w", o.Experiment, err)
	}
	return startMLflowFolder(filepath.Join(root, experiment), experiment, o.RunName, time.Now())
}

// mlflowExperiment is the id of the experiment of that name, made if it is missing.
func mlflowExperiment(root, name string, now time.Time) (string, error) {
	metas, err := filepath.Glob(filepath.Join(escapeGlob(root), "*", mlflowMeta))
	if err != nil {
		return "", err
	}
	for _, file := range metas {
		var meta mlflowExperimentMeta
		if err := readYAML(file, &meta); err != nil {
			return "", err
		}
		if meta.Name != name {
			continue
		}
		if meta.LifecycleStage != mlflowActive {
			return "", fmt.Errorf("it is %s: restore it with `mlflow experiments restore`, or choose another", meta.LifecycleStage)
		}
		return filepath.Base(filepath.Dir(file)), nil
	}
	return makeMLflowExperiment(root, name, now)
}

func makeMLflowExperiment(root, name string, now time.Time) (string, error) {
	id := mlflowDefaultID
	if name != mlflowDefault {
		number, err := rand.Int(rand.Reader, big.NewInt(9e17))
		if err != nil {
			return "", err
		}
		id = strconv.FormatInt(number.Int64()+1e17, 10)
	}
	folder := filepath.Join(root, id)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	return id, writeYAML(filepath.Join(folder, mlflowMeta), mlflowExperimentMeta{
		ArtifactLocation: fileURI(folder), CreationTime: now.UnixMilli(), ExperimentID: id,
		LastUpdateTime: now.UnixMilli(), LifecycleStage: mlflowActive, Name: name,
	})
}

func startMLflowFolder(experimentFolder, experiment, name string, now time.Time) (*mlflowFolder, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	id := hex.EncodeToString(random)
	if name == "" {
		name = "run-" + id[:8]
	}
	s := &mlflowFolder{folder: filepath.Join(experimentFolder, id)}
	for _, sub := range []string{"params", "metrics", "tags", "artifacts"} {
		if err := os.MkdirAll(filepath.Join(s.folder, sub), 0o777); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(s.folder, "tags", "mlflow.runName"), []byte(name), 0o644); err != nil {
		return nil, err
	}
	s.meta = mlflowRunMeta{
		ArtifactURI: fileURI(filepath.Join(s.folder, "artifacts")), ExperimentID: experiment, LifecycleStage: mlflowActive,
		RunID: id, RunName: name, RunUUID: id, SourceType: mlflowLocalJob, StartTime: now.UnixMilli(), Status: mlflowRunning,
		Tags: []string{}, UserID: userName(),
	}
	return s, s.writeMeta()
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// resumeMLflowFolder finds the run, in whatever experiment, and marks it as running again.
func resumeMLflowFolder(root, id string) (*mlflowFolder, error) {
	if !filepath.IsLocal(id) || filepath.Base(id) != id {
		return nil, fmt.Errorf("continue run %q: that is no run's id", id)
	}
	found, err := filepath.Glob(filepath.Join(escapeGlob(root), "*", escapeGlob(id), mlflowMeta))
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("continue run %s: %d runs of that id in %s; unset MLFLOW_RUN_ID to start a new one", id, len(found), root)
	}
	s := &mlflowFolder{folder: filepath.Dir(found[0])}
	if err := readYAML(found[0], &s.meta); err != nil {
		return nil, err
	}
	s.meta.Status, s.meta.EndTime = mlflowRunning, nil
	return s, s.writeMeta()
}

func (s *mlflowFolder) runID() string { return s.meta.RunID }

func (s *mlflowFolder) tag(name, value string) error {
	return rundir.WriteFileAtomic(filepath.Join(s.folder, "tags", filepath.FromSlash(name)), []byte(value), 0o644)
}

// recorded reads the last lines of the files of metrics.
func (s *mlflowFolder) recorded() (recorded, error) {
	kept := recorded{}
	root := filepath.Join(s.folder, "metrics")
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) != 3 || !strings.HasSuffix(line, "\n") {
				continue
			}
			if step, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
				kept.note(filepath.ToSlash(name), step)
			}
		}
		return nil
	})
	return kept, err
}

func (s *mlflowFolder) params(params map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if err := s.param(name, params[name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *mlflowFolder) param(name, value string) error {
	file := filepath.Join(s.folder, "params", filepath.FromSlash(name))
	old, err := os.ReadFile(file)
	switch {
	case err == nil && string(old) != value:
		return fmt.Errorf("parameter %s is %q and can't become %q: start a new run", name, old, value)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return rundir.WriteFileAtomic(file, []byte(value), 0o644)
}

func (s *mlflowFolder) metrics(metrics []mlflowMetric) error {
	for _, m := range metrics {
		file := filepath.Join(s.folder, "metrics", filepath.FromSlash(m.name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		line := fmt.Sprintf("%d %s %d\n", m.timestamp, strconv.FormatFloat(m.value, 'g', -1, 64), m.step)
		if err := appendLine(file, line); err != nil {
			return err
		}
	}
	return nil
}

// appendLine appends to a file that is open only for that long: a run may have more metrics than a process may have files.
func appendLine(path, line string) error {
	f, err := openLines(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

func (s *mlflowFolder) artifact(name string, content io.Reader) error {
	return writeArtifact(filepath.Join(s.folder, "artifacts", filepath.FromSlash(name)), content)
}

func (s *mlflowFolder) finish(now time.Time) error {
	end := now.UnixMilli()
	s.meta.Status, s.meta.EndTime = mlflowFinished, &end
	return s.writeMeta()
}

func (s *mlflowFolder) writeMeta() error {
	return writeYAML(filepath.Join(s.folder, mlflowMeta), s.meta)
}

func fileURI(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

func readYAML(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func writeYAML(file string, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(file, text, 0o644)
}
