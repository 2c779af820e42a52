package slurmtmpl

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/submit"
)

//go:embed job.sbatch.tmpl
var embedded string

// Render returns the batch script of spec, from the file spec.Template or else from the embedded
// template. It refuses an invalid spec.
func Render(spec submit.JobSpec) ([]byte, error) {
	if err := errors.Join(spec.Validate(), Validate(spec)); err != nil {
		return nil, err
	}
	data, err := newData(spec)
	if err != nil {
		return nil, err
	}
	tmpl, err := load(spec.Template)
	if err != nil {
		return nil, err
	}
	var script bytes.Buffer
	if err := tmpl.Execute(&script, data); err != nil {
		return nil, fmt.Errorf("batch script: %w", err)
	}
	if !strings.HasPrefix(script.String(), "#!") {
		return nil, fmt.Errorf("--template=%q: the first line must begin with #!, or sbatch refuses the script", spec.Template)
	}
	if bytes.Contains(script.Bytes(), []byte("\r\n")) {
		return nil, fmt.Errorf("--template=%q: has Windows line ends (\\r\\n), which sbatch refuses; convert the file with: sed -i 's/\\r$//' FILE", spec.Template)
	}
	return script.Bytes(), nil
}

func load(path string) (*template.Template, error) {
	name, text := "job.sbatch.tmpl", embedded
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("--template: %w", err)
		}
		name, text = path, string(data)
	}
	tmpl, err := template.New(name).Funcs(template.FuncMap{"quote": quote, "join": join}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--template: %w", err)
	}
	return tmpl, nil
}

// quote quotes a word for bash. sbatch refuses a script with Windows line ends, in quotes too.
func quote(word string) string {
	if !strings.Contains(word, "\r") {
		return shellescape.Quote(word)
	}
	return "$'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\r", `\r`).Replace(word) + "'"
}

func join(words []string) string { return strings.Join(words, " ") }
