package executed

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

//go:embed rank.sh.tmpl
var rankText string

var rankTemplate = template.Must(template.New("rank").Option("missingkey=error").Funcs(template.FuncMap{"quote": shellescape.Quote}).Parse(rankText))

// WriteRankScript writes into a folder the script that becomes a rank's program in the run in dir,
// on rank 0 through attach. The script contains the run directory's path, so it must be written
// again if that may have moved.
func WriteRankScript(into, dir rundir.Dir) error {
	var script bytes.Buffer
	err := rankTemplate.Execute(&script, map[string]any{"Rank": cluster.Shell(), "Var": rundir.Names, "Submit": dir.Submit()})
	if err != nil {
		return fmt.Errorf("rank script: %w", err)
	}
	return rundir.WriteFileAtomic(into.RankScript(), script.Bytes(), 0o700)
}
