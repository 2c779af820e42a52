package magic

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"gonbatch/rundir"
)

// state is how a job fares.
type state struct {
	Job Job
	// Run is the run's name, State the state in the submit command's words, Reason why it ended so.
	Run, State, Reason string
	// Step is the last step of the training that has metrics, Loss the first of them that is a loss, over time.
	Step   int64
	Losses []float64
	// Metrics are those of the last line, by name.
	Metrics map[string]float64
	// Log is the end of rank 0's log.
	Log []string
}

// readState takes what `submit status JOB` printed, and what the run directory has.
func readState(job Job, text string) state {
	s := state{Job: job}
	head, reason, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "run":
			s.Run = value
		case "state":
			s.State = value
		case "run directory":
			s.Job.Dir = value
		}
	}
	s.Reason = strings.TrimSpace(reason)
	if s.Job.Dir != "" {
		dir := rundir.At(s.Job.Dir)
		s.readMetrics(dir.Metrics())
		s.Log = tail(dir.RankLog(0))
	}
	return s
}

// running are the words with which the state of a job begins that has not ended.
var running = []string{"pending", "running", "suspended", "staged", "unknown"}

func (s state) ended() bool {
	return s.State != "" && !slices.ContainsFunc(running, func(word string) bool { return strings.HasPrefix(s.State, word) })
}

func (s state) succeeded() bool { return strings.HasPrefix(s.State, "succeeded") }

func (s state) explanation() string {
	if s.Reason != "" {
		return s.Reason
	}
	return s.State
}

// readMetrics reads the lines of metrics.jsonl. A line that is being written is not JSON yet.
func (s *state) readMetrics(file string) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var fields map[string]any
		if json.Unmarshal(lines.Bytes(), &fields) != nil {
			continue
		}
		s.addMetrics(fields)
	}
}

func (s *state) addMetrics(fields map[string]any) {
	names := []string{}
	if s.Metrics == nil {
		s.Metrics = map[string]float64{}
	}
	for name, value := range fields {
		number, ok := value.(float64)
		switch {
		case !ok:
		case name == "step" || name == "global_step":
			s.Step = int64(number)
		default:
			s.Metrics[name] = number
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.Contains(strings.ToLower(name), "loss") {
			s.Losses = append(s.Losses, s.Metrics[name])
			return
		}
	}
}

// The log's end: as many lines, found in as many bytes.
const tailLines, tailBytes = 8, 4096

func tail(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return nil
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(text), ""), "\n"), "\n")
	for i, line := range lines {
		lines[i] = line[strings.LastIndex(line, "\r")+1:] // a progress bar overwrites its line
	}
	return lines[max(0, len(lines)-tailLines):]
}
