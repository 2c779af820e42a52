package submit

import (
	"fmt"
	"strconv"
	"strings"
)

// GPUs are the GPUs of each node: a number, or a type and a number, such as "a100:2". "gpu:" may
// come first, as in SLURM's --gres. It is a flag value.
type GPUs struct {
	Count int    `json:"count,omitempty"`
	Kind  string `json:"kind,omitempty"`
}

// String returns the value in the notation of the command line and the schedulers.
func (g *GPUs) String() string {
	if g.Kind == "" {
		return strconv.Itoa(g.Count)
	}
	return g.Kind + ":" + strconv.Itoa(g.Count)
}

// Set parses a value. A type needs a number, although SLURM reads a lone type as one GPU of it.
func (g *GPUs) Set(text string) error {
	short := strings.TrimPrefix(text, "gpu:")
	if text == "gpu" {
		short = "1"
	}
	kind, number, typed := strings.Cut(short, ":")
	if !typed {
		kind, number = "", short
	}
	count, err := strconv.Atoi(number)
	if err != nil || typed && kind == "" {
		return fmt.Errorf("%q is neither a number nor TYPE:NUMBER", text)
	}
	g.Count, g.Kind = count, kind
	return nil
}

// Type is the name of the value in help and errors.
func (g *GPUs) Type() string { return "gpus" }
