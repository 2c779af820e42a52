package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonbatch/submit"
	"gonbatch/submit/scratch"
)

// Cluster asks scontrol for all partitions and nodes.
func (s *Scheduler) Cluster(ctx context.Context) (c submit.Cluster, err error) {
	out, err := s.runner.Run(ctx, "scontrol", "--all", "--oneliner", "show", "partition")
	if errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("%w: SLURM's commands are on a cluster's login nodes", err)
	}
	if err != nil {
		return c, unanswered(err)
	}
	for line := range strings.Lines(string(out)) {
		if fields := fieldsOf(line); fields["PartitionName"] != "" {
			c.Partitions = append(c.Partitions, parsePartition(fields))
		}
	}
	if out, err = s.runner.Run(ctx, "scontrol", "--all", "--oneliner", "--details", "show", "node"); err != nil {
		return c, unanswered(err)
	}
	for line := range strings.Lines(string(out)) {
		if fields := fieldsOf(line); fields["NodeName"] != "" {
			c.Nodes = append(c.Nodes, parseNode(fields))
		}
	}
	return c, nil
}

// Usage asks squeue for the user's jobs, and sacctmgr for the user's limits: without SLURM's
// database, there are none.
func (s *Scheduler) Usage(ctx context.Context) (list []submit.Usage, limits []string, err error) {
	out, err := s.runner.Run(ctx, "squeue", "--noheader", fmt.Sprintf("--user=%d", os.Geteuid()), "--format=%T|%D|%C")
	if err != nil {
		return nil, nil, unanswered(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 3 {
			continue
		}
		state := string(parseState(fields[0]))
		at := slices.IndexFunc(list, func(u submit.Usage) bool { return u.State == state })
		if at < 0 {
			at = len(list)
			list = append(list, submit.Usage{State: state})
		}
		list[at].Jobs++
		list[at].Nodes += atoi(fields[1])
		list[at].CPUs += atoi(fields[2])
	}
	self, err := user.Current()
	if err != nil {
		return list, nil, err
	}
	names := []string{"Account", "Partition", "QOS", "MaxJobs", "MaxSubmitJobs", "MaxTRES", "MaxWall", "GrpJobs", "GrpTRES"}
	out, err = s.runner.Run(ctx, "sacctmgr", "--noheader", "--parsable2", "show", "associations", "where", "user="+self.Username, "format="+strings.Join(names, ","))
	if err != nil {
		return list, nil, nil
	}
	for line := range strings.Lines(string(out)) {
		var words []string
		for i, value := range strings.Split(strings.TrimSpace(line), "|") {
			if value != "" && i < len(names) {
				words = append(words, names[i]+"="+value)
			}
		}
		limits = append(limits, strings.Join(words, " "))
	}
	return list, limits, nil
}

// fieldsOf returns the fields of a record on one line; "(null)" is "".
func fieldsOf(line string) map[string]string {
	fields := map[string]string{}
	for _, word := range strings.Fields(line) {
		name, value, found := strings.Cut(word, "=")
		if _, twice := fields[name]; found && !twice && value != "(null)" {
			fields[name] = value
		}
	}
	return fields
}

func parsePartition(fields map[string]string) submit.Partition {
	p := submit.Partition{Name: fields["PartitionName"], Default: fields["Default"] == "YES", Up: fields["State"] == "UP", Nodes: atoi(fields["TotalNodes"])}
	for name, open := range map[string]string{"AllowGroups": "ALL", "AllowAccounts": "ALL", "AllowQos": "ALL", "RootOnly": "NO", "ReqResv": "NO"} {
		value, known := fields[name]
		p.Restricted = p.Restricted || known && value != open
	}
	p.MaxMemory, _ = strconv.Atoi(fields["MaxMemPerNode"]) // UNLIMITED is none.
	p.MaxNodes, _ = strconv.Atoi(fields["MaxNodes"])       // UNLIMITED is none.
	if submit.TimeLimit(fields["MaxTime"]) > 0 {
		p.MaxTime = fields["MaxTime"]
	}
	return p
}

// unusable matches a state of a node that takes no jobs. One that is powered down does.
var unusable = regexp.MustCompile(`\b(DOWN|DRAIN|DRAINED|DRAINING|FAIL|FAILING|FUTURE|INVAL|MAINT|MAINTENANCE|NOT_RESPONDING|REBOOT\w*|RESERVED|UNKNOWN)\b`)

func parseNode(fields map[string]string) submit.Node {
	n := submit.Node{
		Name: fields["NodeName"], Partitions: split(fields["Partitions"]), Features: split(fields["ActiveFeatures"]), Usable: !unusable.MatchString(fields["State"]),
		CPUs: atoi(fields["CPUTot"]), Memory: atoi(fields["RealMemory"]), GPUs: parseGPUs(fields["Gres"]),
	}
	if efficient, known := fields["CPUEfctv"]; known { // Without those that SLURM's own processes have.
		n.CPUs = atoi(efficient)
	}
	n.FreeCPUs, n.FreeMemory, n.FreeGPUs = max(0, n.CPUs-atoi(fields["CPUAlloc"])), max(0, n.Memory-atoi(fields["AllocMem"])), maps.Clone(n.GPUs)
	for kind, used := range parseGPUs(fields["GresUsed"]) {
		n.FreeGPUs[kind] -= used
	}
	return n
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// gpuResource matches the GPUs in a list of generic resources: gpu:2, gpu:a100:4(S:0-1),
// gpu:a100:1(IDX:0,3).
var gpuResource = regexp.MustCompile(`(?:^|,)gpu:(?:([^:,()]+):)?([0-9]+)`)

func parseGPUs(list string) map[string]int {
	gpus := map[string]int{}
	for _, m := range gpuResource.FindAllStringSubmatch(list, -1) {
		gpus[m[1]] += atoi(m[2])
	}
	return gpus
}

// expected and declined match sbatch's answers to --test-only.
var (
	expected = regexp.MustCompile(`to start at (\S+) using \d+ processors on nodes (\S+) in partition (\S+)`)
	declined = regexp.MustCompile(`(?m)^allocation failure: (.*)$`)
	// mistake is about the options; sbatch refuses such a job at once.
	mistake = regexp.MustCompile(`(?m)^sbatch: error: (.*)$`)
	// unreached is the error of a controller that doesn't answer.
	unreached = regexp.MustCompile(`(?i)contact|connect|timed out|socket|communication|lookup|fetch|configuration source|zero bytes`)
	// final are the reasons for which sbatch refuses a job too.
	final = regexp.MustCompile(`(?i)invalid|inactive or drain|not permitted|deadline`)
)

// never is how far away a start must be to mean that the job never starts.
const never = 366 * 24 * time.Hour

// Expect asks sbatch, which doesn't queue the job.
func (s *Scheduler) Expect(ctx context.Context, spec submit.JobSpec) (e submit.Expectation, err error) {
	script, err := s.Script(spec)
	if err != nil {
		return e, err
	}
	folder, err := scratch.Make(scratch.Plan)
	if err != nil {
		return e, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	file := filepath.Join(folder, "script")
	if err := os.WriteFile(file, script, 0o700); err != nil {
		return e, err
	}
	out, err := s.runner.Run(ctx, "sh", "-c", `exec sbatch --test-only "$0" 2>&1`, file) // It answers on standard error.
	if reason := declined.FindSubmatch(out); err != nil && reason != nil {
		return e, submit.Refusal{Reason: string(reason[1]), Final: final.Match(reason[1])}
	}
	if reason := mistake.FindSubmatch(out); err != nil && reason != nil && final.Match(reason[1]) && !unreached.Match(out) {
		return e, submit.Refusal{Reason: string(reason[1]), Final: true}
	}
	if err != nil {
		return e, err
	}
	m := expected.FindSubmatch(out)
	if m == nil {
		return e, fmt.Errorf("sbatch --test-only says %q", out)
	}
	e.Nodes, e.Partition = string(m[2]), string(m[3])
	e.Start, err = time.ParseInLocation(sacctTime, string(m[1]), time.Local)
	if err == nil && e.Start.Sub(s.shell.Now()) > never {
		return submit.Expectation{}, submit.Refusal{Reason: "SLURM expects it never to start"}
	}
	return e, err
}
