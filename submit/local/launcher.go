package local

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

//go:embed launch.sh.tmpl
var launchText string

var launchTemplate = template.Must(template.New("launch.sh").Funcs(template.FuncMap{"quote": shellescape.Quote}).Parse(launchText))

// launchStep is one step as the template sees it: Command is quoted, the rest is not.
type launchStep struct {
	Name, Dir, Command string
	Env                []string
}

// renderLauncher returns the script that becomes one rank of a step.
func renderLauncher(spec submit.JobSpec, start int) ([]byte, error) {
	data := struct {
		RunDir, Logs, SchedulerLog string
		RequeueCode                int
		Own                        []string
		Steps                      []launchStep
	}{RunDir: spec.RunDir.Path(), Logs: spec.RunDir.Logs(), SchedulerLog: spec.RunDir.SchedulerLog(), RequeueCode: rundir.RequeueCode, Own: ownEnv(spec, start)}
	for _, step := range spec.Steps {
		if step.Once {
			continue
		}
		data.Steps = append(data.Steps, launchStep{
			Name: step.Name, Dir: workDir(spec, step), Env: userEnv(spec, step), Command: shellescape.QuoteCommand(spec.Command(step)),
		})
	}
	var script bytes.Buffer
	if err := launchTemplate.Execute(&script, data); err != nil {
		return nil, fmt.Errorf("launch script: %w", err)
	}
	return script.Bytes(), nil
}

func writeLauncher(spec submit.JobSpec, start int) error {
	script, err := renderLauncher(spec, start)
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(spec.RunDir.Launcher(), script, 0o700)
}
