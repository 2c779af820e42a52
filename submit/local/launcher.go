package local

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

//go:embed launch.sh.tmpl
var launchText string

var launchTemplate = template.Must(template.New("launcher").Option("missingkey=error").Funcs(template.FuncMap{"quote": shellescape.Quote}).Parse(launchText))

// launchCell is one cell for the template: Command is quoted, the rest is not.
type launchCell struct {
	Name, Dir, Command string
	Env                []string
}

// writeLauncher writes the script that starts one rank of a cell.
func (s *start) writeLauncher() error {
	const rank = "\x00"
	before, after, _ := strings.Cut(s.spec.RunDir.RankLogPattern(rank), rank)
	var cells []launchCell
	for _, cell := range s.spec.Cells {
		if !cell.Once {
			cells = append(cells, launchCell{cell.Name, workDir(s.spec, cell), shellescape.QuoteCommand(s.spec.Command(cell)), userEnv(s.spec, cell)})
		}
	}
	var script bytes.Buffer
	err := launchTemplate.Execute(&script, map[string]any{
		"Rank": cluster.Shell(), "Dir": s.spec.RunDir, "LogBefore": before, "LogAfter": after, "RequeueCode": rundir.RequeueCode, "Unasked": rundir.Unasked,
		"Var": rundir.Names, "Own": s.ownEnv(""), "Cells": cells, "Grace": int(grace.Seconds()),
	})
	if err != nil {
		return fmt.Errorf("launch script: %w", err)
	}
	return rundir.WriteFileAtomic(s.spec.RunDir.Launcher(), script.Bytes(), 0o700)
}
