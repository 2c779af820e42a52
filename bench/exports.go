package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// exportSizes are the sizes of the exported notebooks, in cells.
var exportSizes = []int{10, 200, 2000}

// Every mainEvery-th cell is a main cell, which is a separate program in gonbatch's export.
const mainEvery = 10

// exportReport is the result of measureExports.
type exportReport struct {
	CPU         string      `json:"cpu"`
	LoadAverage string      `json:"load_average"`
	Rounds      int         `json:"rounds"`
	Nbconvert   string      `json:"nbconvert"`
	Rows        []exportRow `json:"rows"`
}

// exportRow is one notebook.
type exportRow struct {
	Cells     int       `json:"cells"`
	Submit    float64   `json:"submit_seconds"`
	Nbconvert float64   `json:"nbconvert_seconds"`
	All       []float64 `json:"all_submit_seconds"`
	Others    []float64 `json:"all_nbconvert_seconds"`
}

// measureExports times `submit export` and `jupyter nbconvert --to script`, in turns.
func measureExports(ctx context.Context, opts options, out io.Writer) (_ exportReport, err error) {
	report := exportReport{CPU: cpuModel(), LoadAverage: loadAverage(), Rounds: opts.rounds}
	submit, err := build(ctx, "./cmd/submit", "bench-submit")
	if err != nil {
		return report, err
	}
	nbconvert, err := filepath.Abs(filepath.Join(".cache", "venv", "bin", "jupyter-nbconvert"))
	if err != nil {
		return report, err
	}
	version, err := exec.CommandContext(ctx, nbconvert, "--version").Output()
	if errors.Is(err, fs.ErrNotExist) {
		return report, fmt.Errorf("%s: no nbconvert: run tests/setup.sh bench", nbconvert)
	}
	if err != nil {
		return report, err
	}
	report.Nbconvert = strings.TrimSpace(string(version))
	source, err := os.Getwd()
	if err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "bench-export-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, cells := range exportSizes {
		row, err := measureExport(ctx, opts.rounds, cells, dir, []string{rundir.EnvSource + "=" + source}, submit, nbconvert)
		if err != nil {
			return report, err
		}
		fmt.Fprintf(out, "export, %4d cells: %.3f s, nbconvert %.3f s\n", cells, row.Submit, row.Nbconvert)
		report.Rows = append(report.Rows, row)
	}
	return report, nil
}

// measureExport exports one notebook repeatedly, to a new folder each time.
func measureExport(ctx context.Context, rounds, cells int, dir string, env []string, submit, nbconvert string) (exportRow, error) {
	row := exportRow{Cells: cells}
	notebook := filepath.Join(dir, fmt.Sprintf("cells-%d.ipynb", cells))
	text, err := exportNotebook(cells)
	if err != nil {
		return row, err
	}
	if err := os.WriteFile(notebook, text, 0o644); err != nil {
		return row, err
	}
	for round := range rounds {
		target := filepath.Join(dir, fmt.Sprintf("out-%d-%d", cells, round))
		took, err := timed(ctx, env, submit, "export", "-o", target, notebook)
		if err != nil {
			return row, err
		}
		row.All = append(row.All, took)
		if took, err = timed(ctx, nil, nbconvert, "--log-level=ERROR", "--to", "script", "--output-dir", target+"-nbconvert", notebook); err != nil {
			return row, err
		}
		row.Others = append(row.Others, took)
	}
	same := func(v float64) float64 { return v }
	row.Submit, row.Nbconvert = median(row.All, same), median(row.Others, same)
	return row, nil
}

// timed runs a command and returns the seconds that it took.
func timed(ctx context.Context, env []string, name string, args ...string) (float64, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return time.Since(start).Seconds(), nil
}

// exportNotebook returns a notebook: imports, then in every ten cells a heading, declarations, and
// a main cell that uses them.
func exportNotebook(cells int) ([]byte, error) {
	list := []map[string]any{codeCell(1, "import (\n\t\"fmt\"\n\t\"strings\"\n)")}
	for i := 2; i <= cells; i++ {
		switch i % mainEvery {
		case 0:
			list = append(list, codeCell(i, fmt.Sprintf("%%%%\nfmt.Println(strings.ToUpper(work%d(3)))", i-1)))
		case 1:
			list = append(list, map[string]any{"cell_type": "markdown", "id": fmt.Sprint("c", i), "metadata": map[string]any{}, "source": fmt.Sprintf("## Part %d\n\nWhat follows.", i)})
		default:
			list = append(list, codeCell(i, fmt.Sprintf(
				"// limit%[1]d bounds work%[1]d.\nconst limit%[1]d = %[1]d\n\n// work%[1]d counts.\nfunc work%[1]d(n int) string {\n\tif n > limit%[1]d {\n\t\treturn \"much\"\n\t}\n\treturn fmt.Sprint(n * limit%[1]d)\n}", i)))
		}
	}
	return json.Marshal(map[string]any{
		"nbformat": 4, "nbformat_minor": 5, "cells": list,
		"metadata": map[string]any{
			"kernelspec":    map[string]string{"name": "gonb", "language": "go", "display_name": "Go"},
			"language_info": map[string]string{"name": "go", "file_extension": ".go"},
		},
	})
}

func codeCell(number int, source string) map[string]any {
	return map[string]any{
		"cell_type": "code", "id": fmt.Sprint("c", number), "metadata": map[string]any{}, "source": source, "outputs": []any{}, "execution_count": nil,
	}
}

func (r exportReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Export\n\nThe time of the whole command, as the median of %d. The commands take turns. One cell in %d is a main\ncell. ", r.Rounds, mainEvery)
	fmt.Fprintf(&b, "`submit export` writes a Go module of programs that compile, each with all declarations above\nit; nbconvert writes the text of the cells to one file.\n%s, load average %s, nbconvert %s.\n\n", r.CPU, r.LoadAverage, r.Nbconvert)
	fmt.Fprintf(&b, "| cells | `submit export` | `jupyter nbconvert --to script` | ratio |\n|--:|--:|--:|--:|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %d | %.3f s | %.3f s | %.1f x |\n", row.Cells, row.Submit, row.Nbconvert, row.Nbconvert/row.Submit)
	}
	return b.String()
}
