package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/plural"
)

const ask = "ask the scheduler for GPUs (submit --gpus-per-node), or compute on CPUs (--platform cpu)"

// names returns the GPUs that CUDA will show this process. A number is one in /dev; any other text
// is CUDA's name of a GPU. CUDA itself silently stops at the first name that it does not know.
func (f Facts) names() ([]string, error) {
	if len(f.GPUs) == 0 {
		return nil, fmt.Errorf("%s: there is no GPU: %s; %s", f.who(), f.whyNone(), ask)
	}
	if !f.IsSet {
		all := make([]string, len(f.GPUs))
		for i, number := range f.GPUs {
			all[i] = strconv.Itoa(number)
		}
		return all, nil
	}
	switch strings.TrimSpace(f.Visible) {
	case "", "-1", "NoDevFiles":
		return nil, fmt.Errorf("%s: %s=%q hides all GPUs from it; %s, or unset the variable", f.who(), visibleVariable, f.Visible, ask)
	}
	var names []string
	for _, text := range strings.Split(f.Visible, ",") {
		name, err := f.name(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("%s: %s=%q names GPU %s twice", f.who(), visibleVariable, f.Visible, text)
		}
		names = append(names, name)
	}
	return names, nil
}

// name returns the GPU that an entry of CUDA_VISIBLE_DEVICES means. A number counts the GPUs that
// the process may open.
func (f Facts) name(entry string) (string, error) {
	if strings.HasPrefix(entry, "GPU-") || strings.HasPrefix(entry, "MIG-") {
		return entry, nil
	}
	index, err := strconv.Atoi(entry)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %s=%q: %q is neither a number nor a name that begins with GPU- or MIG-", f.who(), visibleVariable, f.Visible, entry)
	case index < 0 || index >= len(f.GPUs):
		return "", fmt.Errorf("%s: %s=%q: there is no GPU %d, the process may open %s", f.who(), visibleVariable, f.Visible, index, plural.Of(len(f.GPUs), "GPU"))
	}
	return strconv.Itoa(f.GPUs[index]), nil
}

func (f Facts) whyNone() string {
	if f.Closed > 0 {
		return fmt.Sprintf("/dev has %s, but this job may open none", plural.Of(f.Closed, "GPU"))
	}
	return "/dev has no nvidia0"
}

// Pick returns the index of this rank's GPU among those that CUDA shows this process, if there are
// several ranks. If the launcher gives each rank its own GPU, the index is 0; otherwise it is the
// local rank.
func (f Facts) Pick() (int, error) {
	names, err := f.names()
	if err != nil {
		return 0, err
	}
	switch {
	case len(names) == 1 && (f.IsSet || f.Closed > 0):
		return 0, nil
	case f.LocalRank >= len(names):
		return 0, fmt.Errorf("%s is number %d of the ranks on its node, but sees %s: more tasks than devices; start one for each (--tasks-per-node %d), or request more GPUs",
			f.who(), f.LocalRank+1, plural.Of(len(names), "GPU"), len(names))
	}
	return f.LocalRank, nil
}
