package submit

import (
	"fmt"
	"strconv"
	"strings"
)

// GPUs are the GPUs of each node: a number, or a type and a number, as "a100:2". SLURM's --gres has
// "gpu:" before that. It is a flag's value.
type GPUs struct {
	Count int    `json:"count,omitempty"`
	Kind  string `json:"kind,omitempty"`
}

// String is the value as the command line has it, and as schedulers read it.
func (g *GPUs) String() string {
	if g.Kind == "" {
		return strconv.Itoa(g.Count)
	}
	return g.Kind + ":" + strconv.Itoa(g.Count)
}

// Set reads a value. SLURM takes a type without a number for one GPU of it.
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
		return fmt.Errorf("%q is not a number, nor a type and a number", text)
	}
	g.Count, g.Kind = count, kind
	return nil
}

// Type is what the help and the errors call the value.
func (g *GPUs) Type() string { return "gpus" }
