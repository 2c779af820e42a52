package submit

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Directive is one option of the scheduler: --Name, or --Name=Value.
type Directive struct {
	Name, Value string
	HasValue    bool
}

var directive = regexp.MustCompile(`(?s)^--([a-zA-Z][a-zA-Z0-9-]*)(=(.*))?$`)

// ownDirectives maps those that submit writes itself to the option that sets them; "" where none does.
var ownDirectives = map[string]string{
	"account": "--account", "chdir": "", "constraint": "--constraint", "cpus-per-task": "--cpus-per-task", "error": "",
	"gpus-per-node": "--gpus-per-node", "gres": "--gpus-per-node", "job-name": "--name", "mem": "--mem", "no-requeue": "--max-restarts", "nodes": "--nodes",
	"ntasks": "--nodes and --tasks-per-node", "ntasks-per-node": "--tasks-per-node", "open-mode": "", "output": "",
	"partition": "--partition", "qos": "--qos", "requeue": "--max-restarts", "signal": "--signal-lead", "time": "--time",
}

// ParseDirective reads "--name" or "--name=value". It refuses what submit sets itself: the programs rely on it.
func ParseDirective(text string) (Directive, error) {
	if err := oneLine("directive", text); err != nil {
		return Directive{}, err
	}
	m := directive.FindStringSubmatch(text)
	if m == nil {
		return Directive{}, fmt.Errorf("--directive=%q: give --name or --name=value, as --directive=--exclusive", text)
	}
	option, own := ownDirectives[m[1]]
	switch {
	case own && option == "":
		return Directive{}, fmt.Errorf("--directive=%q: submit sets --%s itself", text, m[1])
	case own && m[1] != "gres":
		return Directive{}, fmt.Errorf("--directive=%q: set it by %s", text, option)
	case own && strings.HasPrefix(m[3], "gpu"):
		return Directive{}, fmt.Errorf("--directive=%q: ask for GPUs by %s", text, option)
	}
	return Directive{Name: m[1], Value: m[3], HasValue: m[2] != ""}, nil
}

func validateDirectives(texts []string) error {
	var errs []error
	for _, text := range texts {
		_, err := ParseDirective(text)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
