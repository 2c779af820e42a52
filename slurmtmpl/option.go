package slurmtmpl

import (
	"fmt"
	"regexp"
	"strings"

	"gonbatch/submit"
)

// parsed is one option of sbatch: --Name, or --Name=Value.
type parsed struct {
	name, value string
	hasValue    bool
}

var directive = regexp.MustCompile(`(?s)^--([a-zA-Z][a-zA-Z0-9-]*)(=(.*))?$`)

// ownDirectives maps the directives that submit writes itself to the options that set them; "" if
// none does.
var ownDirectives = map[string]string{
	"account": "--account", "chdir": "", "constraint": "--constraint", "cpus-per-task": "--cpus-per-task", "error": "",
	"gpus-per-node": "--gpus-per-node", "gres": "--gpus-per-node", "job-name": "--name", "mem": "--mem", "no-requeue": "--max-restarts", "nodes": "--nodes",
	"ntasks": "--nodes and --tasks-per-node", "ntasks-per-node": "--tasks-per-node", "open-mode": "", "output": "",
	"partition": "--partition", "qos": "--qos", "requeue": "--max-restarts", "signal": "--signal-lead", "time": "--time",
}

// foreignDirectives maps directives that submit cannot support to the reason.
var foreignDirectives = map[string]string{
	"array":     "a run directory has one job; submit the notebook once for each value, with -p or arguments after --",
	"help":      "sbatch would print its help and queue nothing",
	"parsable":  "submit reads what sbatch prints, and asks for this form itself",
	"test-only": "sbatch would queue nothing; --dry-run prints the batch script",
	"usage":     "sbatch would print its help and queue nothing",
	"version":   "sbatch would print its version and queue nothing",
	"wait":      "submit would hang until the job ends; --follow waits for it and shows its log",
	"wrap":      "the job runs the notebook; use --setup to run a shell command first",
}

// shortDirectives maps the letters of refused options to their long names.
var shortDirectives = map[string]string{
	"a": "array", "A": "account", "c": "cpus-per-task", "C": "constraint", "D": "chdir", "e": "error", "h": "help", "J": "job-name", "n": "ntasks", "N": "nodes",
	"o": "output", "p": "partition", "q": "qos", "t": "time", "V": "version", "W": "wait",
}

// parseDirective parses "--name" or "--name=value". It refuses options that submit sets itself,
// since the programs rely on them, and options that submit cannot support.
func parseDirective(text string) (parsed, error) {
	if err := submit.OneLine("directive", text); err != nil {
		return parsed{}, err
	}
	m := directive.FindStringSubmatch(text)
	if m == nil {
		if err := refuseShort(text); err != nil {
			return parsed{}, err
		}
		return parsed{}, fmt.Errorf("--directive=%q: give --name or --name=value, such as --directive=--nice=100", text)
	}
	d := parsed{name: m[1], value: m[3], hasValue: m[2] != ""}
	if d.name == "gres" && !strings.HasPrefix(d.value, "gpu") {
		return d, nil
	}
	return d, refuseDirective(text, d.name)
}

// refuseShort refuses "-W" with the reason of "--wait", which says more than that the form is
// wrong.
func refuseShort(text string) error {
	if len(text) < 2 || text[0] != '-' {
		return nil
	}
	name, known := shortDirectives[text[1:2]]
	if !known {
		return nil
	}
	return refuseDirective(text, name)
}

// refuseDirective refuses a name that submit sets itself or cannot allow.
func refuseDirective(text, name string) error {
	if name == "gpus" { // It is an option, although it is also the beginning of another.
		return nil
	}
	if full := abbreviated(name); full != "" {
		return fmt.Errorf("--directive=%q: sbatch reads --%s as --%s; write it out", text, name, full)
	}
	if reason, foreign := foreignDirectives[name]; foreign {
		return fmt.Errorf("--directive=%q: --%s is refused: %s", text, name, reason)
	}
	option, own := ownDirectives[name]
	switch {
	case own && option == "":
		return fmt.Errorf("--directive=%q: submit sets --%s itself", text, name)
	case own && name == "gres":
		return fmt.Errorf("--directive=%q: request GPUs with %s", text, option)
	case own:
		return fmt.Errorf("--directive=%q: set it with %s", text, option)
	}
	return nil
}

// abbreviated returns the refused option for which name may be an abbreviation: sbatch accepts the
// beginning of a long option. It returns "" for a whole name.
func abbreviated(name string) string {
	found := ""
	for _, names := range []map[string]string{ownDirectives, foreignDirectives} {
		if _, whole := names[name]; whole {
			return ""
		}
		for full := range names {
			if strings.HasPrefix(full, name) && (found == "" || full < found) {
				found = full
			}
		}
	}
	return found
}
