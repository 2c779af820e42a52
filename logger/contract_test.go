package logger_test

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonbatch/logger"
	"gonbatch/logger/loggertest"
)

// TestContract runs the loggers' suite on all loggers except MLflow, which package tests runs on a
// real server.
func TestContract(t *testing.T) {
	lines := func(dir string) (logger.Logger, error) {
		return logger.NewJSONLines(filepath.Join(dir, "metrics.jsonl"))
	}
	kinds := map[string]loggertest.Kind{
		"JSON lines":  {Open: lines, Loss: lossOfLines},
		"CSV":         {Open: func(dir string) (logger.Logger, error) { return logger.NewCSV(filepath.Join(dir, "metrics.csv")) }, Loss: lossOfTable},
		"TensorBoard": {Open: func(dir string) (logger.Logger, error) { return logger.NewTensorBoard(dir) }},
		"curves":      {Open: func(dir string) (logger.Logger, error) { return logger.NewCurves(logger.CurvesOptions{Dir: dir}) }},
		"multi": {Open: func(dir string) (logger.Logger, error) {
			l, err := lines(dir)
			return logger.NewMulti(logger.MultiOptions{Stderr: io.Discard}, l), err
		}, Loss: lossOfLines},
		"parameters": {Open: func(dir string) (logger.Logger, error) {
			return logger.NewParamsFile(filepath.Join(dir, "parameters", "main.json"))
		}},
		"deferred": {Open: func(dir string) (logger.Logger, error) {
			return logger.NewDeferred(func() (logger.Logger, error) { return lines(dir) }), nil
		}, Loss: lossOfLines},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) { loggertest.Run(t, kind) })
	}
}

func lossOfLines(t *testing.T, dir string) map[int64]float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	loss := map[int64]float64{}
	for line := range strings.Lines(string(text)) {
		record := struct {
			Step int64
			Loss *float64
		}{}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record.Loss != nil {
			loss[record.Step] = *record.Loss
		}
	}
	return loss
}

func lossOfTable(t *testing.T, dir string) map[int64]float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	reader := csv.NewReader(strings.NewReader(string(text)))
	reader.FieldsPerRecord = -1 // A later row may have more metrics.
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	loss := map[int64]float64{}
	for _, row := range rows[1:] {
		for column, name := range rows[0][:len(row)] {
			if name != "loss" || row[column] == "" {
				continue
			}
			step, err := strconv.ParseInt(row[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if loss[step], err = strconv.ParseFloat(row[column], 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return loss
}
