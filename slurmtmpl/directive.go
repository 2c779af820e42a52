package slurmtmpl

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gonbatch/submit"
)

// directives returns the options of the #SBATCH lines, sorted.
func directives(spec submit.JobSpec) ([]string, error) {
	lines := []string{
		option("job-name", cmp.Or(spec.QueueName, spec.Name)),
		option("nodes", fmt.Sprint(spec.Nodes)),
		option("ntasks-per-node", fmt.Sprint(spec.TasksPerNode)),
		option("open-mode", "append"),
		option("output", escapePattern(spec.RunDir.SchedulerLog())),
		option("signal", fmt.Sprintf("B:USR1@%d", int(spec.Lead().Seconds()))),
	}
	if spec.MaxRestarts > 0 {
		lines = append(lines, "--requeue")
	} else {
		lines = append(lines, "--no-requeue")
	}
	for _, o := range []struct{ name, value string }{
		{"account", spec.Account}, {"chdir", spec.WorkDir}, {"constraint", spec.Constraint}, {"cpus-per-task", number(spec.CPUsPerTask)},
		{"gpus-per-node", gpus(spec)}, {"mem", spec.Mem}, {"partition", spec.Partition}, {"qos", spec.QOS}, {"time", spec.Time},
	} {
		if o.value != "" {
			lines = append(lines, option(o.name, o.value))
		}
	}
	for name, value := range spec.Passed {
		if value == "" {
			lines = append(lines, "--"+name)
		} else {
			lines = append(lines, option(name, value))
		}
	}
	for _, text := range spec.Directives {
		d, err := parseDirective(text)
		if err != nil {
			return nil, err
		}
		if d.name == "export" {
			d.value = exportSecrets(d.value, spec.Secrets)
		}
		if d.hasValue {
			lines = append(lines, option(d.name, d.value))
		} else {
			lines = append(lines, "--"+d.name)
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// exportSecrets adds the secrets to the names in --export. An empty value, or one with ALL,
// includes them already.
func exportSecrets(value string, secrets []string) string {
	names := strings.Split(value, ",")
	switch {
	case len(secrets) == 0, value == "", slices.Contains(names, "ALL"):
		return value
	case value == "NONE", value == "NIL":
		return strings.Join(secrets, ",")
	}
	return value + "," + strings.Join(secrets, ",")
}

// gpus returns the GPUs of each node; "" for none.
func gpus(spec submit.JobSpec) string {
	if spec.GPUs.Count == 0 {
		return ""
	}
	return spec.GPUs.String()
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// plain matches values that need no quotes on a #SBATCH line.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:,+@%=-]+$`)

func option(name, value string) string { return "--" + name + "=" + quoteDirective(value) }

// quoteDirective quotes for sbatch's own reader of #SBATCH lines, which is not a shell. A backslash
// makes the next character plain, in double quotes too, "#" outside of quotes starts a comment, and
// "$" is plain. A newline can't be quoted: JobSpec.Validate refuses it.
func quoteDirective(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}
