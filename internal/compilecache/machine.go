package compilecache

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// cpuFacts are the lines of /proc/cpuinfo that matter to compiled code, on x86, arm64 and RISC-V.
// The others change from boot to boot, or give the CPU's current speed.
var cpuFacts = []string{
	"vendor_id", "cpu family", "model", "model name", "stepping", "flags",
	"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
	"isa", "uarch",
}

// Machine describes the kind of CPU in this machine, with its features. Code compiled for one kind
// may use instructions that another lacks.
func Machine() (string, error) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", fmt.Errorf("what CPU this machine has: %w", err)
	}
	return machine(string(text))
}

// machine is Machine for the text of a /proc/cpuinfo: it lists each kind of core once.
func machine(text string) (string, error) {
	var kinds []string
	for core := range strings.SplitSeq(text, "\n\n") {
		var facts []string
		for line := range strings.SplitSeq(core, "\n") {
			name, value, _ := strings.Cut(line, ":")
			if name = strings.TrimSpace(name); slices.Contains(cpuFacts, name) {
				facts = append(facts, name+":"+value)
			}
		}
		if kind := strings.Join(facts, "\n"); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return "", fmt.Errorf("what CPU this machine has: /proc/cpuinfo does not name it: %.60q", text)
	}
	slices.Sort(kinds)
	return strings.Join(kinds, "\n\n"), nil
}
