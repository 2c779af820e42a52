package executed

import (
	_ "embed"
	"strings"
	"text/template"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

//go:embed rank.sh.tmpl
var rankText string

var rankTemplate = template.Must(template.New("rank").Option("missingkey=error").Funcs(template.FuncMap{"quote": shellescape.Quote}).Parse(rankText))

// RankScript becomes the program of a rank of the run: rank 0's by Attach.
func RankScript(dir rundir.Dir) ([]byte, error) {
	var script strings.Builder
	err := rankTemplate.Execute(&script, map[string]any{"Rank": cluster.Shell(), "Var": rundir.Names, "Submit": dir.Submit()})
	return []byte(script.String()), err
}
