package logger

import (
	"bytes"
	"encoding/json"
	"path"
	"time"
)

const (
	mlflowWeights = "model.safetensors"
	mlflowMLmodel = "MLmodel"
	// mlflowModelTag is the tag by which MLflow's pages find a run's models.
	mlflowModelTag = "mlflow.log-model.history"
)

// mlflowModel is the content of the file MLmodel.
type mlflowModel struct {
	ArtifactPath string                       `json:"artifact_path"`
	Flavors      map[string]map[string]string `json:"flavors"`
	RunID        string                       `json:"run_id"`
	Created      string                       `json:"utc_time_created"`
	Bytes        int64                        `json:"model_size_bytes"`
}

func newMLflowModel(name, run string, size int64, now time.Time) mlflowModel {
	return mlflowModel{
		ArtifactPath: name, RunID: run, Created: now.UTC().Format("2006-01-02 15:04:05.000000"), Bytes: size,
		Flavors: map[string]map[string]string{"safetensors": {"data": mlflowWeights}},
	}
}

// describe registers the model, after its weights have been uploaded.
func (m mlflowModel) describe(server *mlflowServer) error {
	text, err := json.Marshal(m) // MLflow reads YAML, which includes JSON.
	if err != nil {
		return err
	}
	if err := server.artifact(path.Join(m.ArtifactPath, mlflowMLmodel), bytes.NewReader(text)); err != nil {
		return err
	}
	return server.tag(mlflowModelTag, "["+string(text)+"]")
}
