package logger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MLflow's limits on one request.
const (
	mlflowParamsPerRequest  = 100
	mlflowMetricsPerRequest = 1000
)

// mlflowServer is a run on a tracking server, through MLflow's REST API.
type mlflowServer struct {
	options MLflowOptions
	client  *http.Client
	run     mlflowRunInfo
	kept    recorded // of the continued run
}

type mlflowRunInfo struct {
	RunID       string `json:"run_id"`
	ArtifactURI string `json:"artifact_uri"`
}

type mlflowRun struct {
	Run struct {
		Info mlflowRunInfo `json:"info"`
		Data struct {
			Metrics []struct {
				Key  string      `json:"key"`
				Step json.Number `json:"step"`
			} `json:"metrics"`
		} `json:"data"`
	} `json:"run"`
}

// mlflowError is a server's error response.
type mlflowError struct {
	Status  string `json:"-"`
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

func (e *mlflowError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answers %s %s %s", e.Status, e.Code, e.Message))
}

func openMLflowServer(o MLflowOptions) (*mlflowServer, error) {
	o.TrackingURI = strings.TrimRight(o.TrackingURI, "/")
	s := &mlflowServer{options: o, client: &http.Client{Timeout: o.Timeout}}
	if o.RunID != "" {
		return s, s.resume()
	}
	return s, s.start(time.Now())
}

// resume finds the run, and marks it as running again.
func (s *mlflowServer) resume() error {
	var found mlflowRun
	if err := s.call(http.MethodGet, "runs/get?run_id="+url.QueryEscape(s.options.RunID), nil, &found); err != nil {
		return fmt.Errorf("continue run %s: %w", s.options.RunID, err)
	}
	s.run, s.kept = found.Run.Info, recorded{}
	for _, m := range found.Run.Data.Metrics { // The last value of each metric.
		step, err := m.Step.Int64()
		if err != nil {
			return fmt.Errorf("continue run %s: step %q of the metric %s: %w", s.options.RunID, m.Step, m.Key, err)
		}
		s.kept.note(m.Key, step)
	}
	return s.update(map[string]any{"run_id": s.run.RunID, "status": "RUNNING"})
}

func (s *mlflowServer) start(now time.Time) error {
	experiment, err := s.experiment()
	if err != nil {
		return fmt.Errorf("experiment %q: %w", s.options.Experiment, err)
	}
	var made mlflowRun
	in := map[string]any{"experiment_id": experiment, "start_time": now.UnixMilli(), "run_name": s.options.RunName}
	if err := s.call(http.MethodPost, "runs/create", in, &made); err != nil {
		return fmt.Errorf("start a run: %w", err)
	}
	s.run = made.Run.Info
	return nil
}

// experiment returns the experiment's id. Another process may create it at the same time.
func (s *mlflowServer) experiment() (string, error) {
	id, err := s.findExperiment()
	if !hasCode(err, "RESOURCE_DOES_NOT_EXIST") {
		return id, err
	}
	var made struct {
		ID string `json:"experiment_id"`
	}
	err = s.call(http.MethodPost, "experiments/create", map[string]any{"name": s.options.Experiment}, &made)
	if hasCode(err, "RESOURCE_ALREADY_EXISTS") {
		return s.findExperiment()
	}
	return made.ID, err
}

func (s *mlflowServer) findExperiment() (string, error) {
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		} `json:"experiment"`
	}
	err := s.call(http.MethodGet, "experiments/get-by-name?experiment_name="+url.QueryEscape(s.options.Experiment), nil, &found)
	return found.Experiment.ID, err
}

func hasCode(err error, code string) bool {
	var answer *mlflowError
	return errors.As(err, &answer) && answer.Code == code
}

func (s *mlflowServer) tag(name, value string) error {
	return s.call(http.MethodPost, "runs/set-tag", map[string]any{"run_id": s.run.RunID, "key": name, "value": value}, nil)
}

// batches sends records, at most limit per request.
func (s *mlflowServer) batches(kind string, all []map[string]any, limit int) error {
	for batch := range slices.Chunk(all, limit) {
		in := map[string]any{"run_id": s.run.RunID, kind: batch}
		if err := s.call(http.MethodPost, "runs/log-batch", in, nil); err != nil {
			return err
		}
	}
	return nil
}

// jsonNumber returns a number in the JSON of protocol buffers.
func jsonNumber(x float64) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return x
}

// artifact stores a file where the server says: through the server itself, or in a folder that both
// can access.
func (s *mlflowServer) artifact(name string, content io.Reader) error {
	uri, err := url.Parse(s.run.ArtifactURI)
	if err != nil {
		return fmt.Errorf("artifact folder %s: %w", s.run.ArtifactURI, err)
	}
	switch uri.Scheme {
	case "mlflow-artifacts":
		segments := strings.Split(strings.Trim(path.Join(uri.Path, name), "/"), "/")
		for i := range segments {
			segments[i] = url.PathEscape(segments[i])
		}
		return s.send(http.MethodPut, "/api/2.0/mlflow-artifacts/artifacts/"+strings.Join(segments, "/"), content, nil)
	case "", "file":
		return writeArtifact(filepath.Join(uri.Path, filepath.FromSlash(name)), content)
	}
	return fmt.Errorf("the server stores artifacts at %s, which only MLflow's own client can write: start it with --serve-artifacts and "+
		"--artifacts-destination", uri.Redacted())
}

// writeArtifact copies content to a file, and creates the folders above it.
func writeArtifact(name string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

func (s *mlflowServer) finish(now time.Time) error {
	return s.update(map[string]any{"run_id": s.run.RunID, "status": "FINISHED", "end_time": now.UnixMilli()})
}

func (s *mlflowServer) update(in map[string]any) error {
	return s.call(http.MethodPost, "runs/update", in, nil)
}

// call calls a method of MLflow's API with a JSON object.
func (s *mlflowServer) call(method, name string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	return s.send(method, "/api/2.0/mlflow/"+name, body, out)
}

func (s *mlflowServer) send(method, where string, body io.Reader, out any) (err error) {
	req, err := http.NewRequest(method, s.options.TrackingURI+where, body)
	if err != nil {
		return err
	}
	s.authorize(req)
	client := *s.client
	if f, ok := body.(*os.File); ok {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		req.ContentLength = info.Size()
		client.Timeout += time.Duration(info.Size()>>20) * time.Second
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return answerError(resp.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

func (s *mlflowServer) authorize(req *http.Request) {
	req.Header.Set("Content-Type", "application/json")
	switch {
	case s.options.Token != "":
		req.Header.Set("Authorization", "Bearer "+s.options.Token)
	case s.options.Username != "":
		req.SetBasicAuth(s.options.Username, s.options.Password)
	}
	if req.Method == http.MethodPut {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
}

func answerError(status string, text []byte) error {
	answer := &mlflowError{}
	if json.Unmarshal(text, answer) != nil {
		const quoted = 200
		answer.Message = fmt.Sprintf("%.*q", quoted, text)
	}
	answer.Status = status
	return answer
}
