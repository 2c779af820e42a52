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

var launchTemplate = template.Must(template.New("launcher").Funcs(template.FuncMap{"quote": shellescape.Quote}).Parse(launchText))

// launchStep is one step as the template sees it: Command is quoted, the rest is not.
type launchStep struct {
	Name, Dir, Command string
	Env                []string
}

// renderLauncher returns the script that becomes one rank of a step.
func (s *start) renderLauncher() ([]byte, error) {
	const rank = "\x00"
	before, after, _ := strings.Cut(s.spec.RunDir.RankLogPattern(rank), rank)
	data := struct {
		Rank                string
		Dir                 rundir.Dir
		LogBefore, LogAfter string
		RequeueCode         int
		Var                 any
		Own                 []string
		Steps               []launchStep
	}{
		Rank: cluster.Shell(), Dir: s.spec.RunDir, LogBefore: before, LogAfter: after, RequeueCode: rundir.RequeueCode, Var: rundir.Names, Own: s.ownEnv(""),
	}
	for _, step := range s.spec.Steps {
		if step.Once {
			continue
		}
		data.Steps = append(data.Steps, launchStep{
			Name: step.Name, Dir: workDir(s.spec, step), Env: userEnv(s.spec, step), Command: shellescape.QuoteCommand(s.spec.Command(step)),
		})
	}
	var script bytes.Buffer
	if err := launchTemplate.Execute(&script, data); err != nil {
		return nil, fmt.Errorf("launch script: %w", err)
	}
	return script.Bytes(), nil
}

func (s *start) writeLauncher() error {
	script, err := s.renderLauncher()
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(s.spec.RunDir.Launcher(), script, 0o700)
}
