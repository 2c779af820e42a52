package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonbatch/checkpoint/folder"
)

// prune removes old checkpoints, but not the newest ones to keep, the one just saved or the best.
// It reports those that can't be removed; the next save tries again.
func (d *Dir) prune(saved int64) {
	all, err := List(d.path)
	if err != nil {
		d.options.Report(fmt.Sprintf("old checkpoints stay: %v", err))
		return
	}
	keep := map[string]bool{}
	if best := d.ranked(all); len(best) > 0 {
		keep[best[0].Path] = true
	}
	whole := 0
	for _, info := range all {
		if d.whole(info) {
			whole++
		}
		// A damaged one is removed once there are enough newer ones that are undamaged.
		if whole > d.options.Keep || whole == d.options.Keep && !d.whole(info) {
			d.remove(info, saved, keep)
		}
	}
}

func (d *Dir) remove(info Info, saved int64, keep map[string]bool) {
	if info.Step == saved || keep[info.Path] || errors.Is(info.Err, folder.ErrForeign) || folder.IsLink(info.Path) || errors.Is(info.Err, folder.ErrNewer) {
		return
	}
	if err := folder.Remove(d.path, info.Step); err != nil {
		d.options.Report(fmt.Sprintf("an old checkpoint can't be removed: %v", err))
		return
	}
	delete(d.damaged, info.Path)
}

// whole reports whether a checkpoint can be used, as far as is known without reading it.
func (d *Dir) whole(info Info) bool { return info.Valid() && !d.damaged[info.Path] }

// ranked returns the undamaged checkpoints that have the metric, the best first; equal ones, the
// newest first.
func (d *Dir) ranked(all []Info) []Info {
	var ranked []Info
	if d.options.Metric == "" {
		return nil
	}
	for _, info := range all {
		v, ok := info.Metrics[d.options.Metric]
		if ok && !math.IsNaN(v) && d.whole(info) {
			ranked = append(ranked, info)
		}
	}
	slices.SortStableFunc(ranked, func(a, b Info) int {
		c := cmp.Compare(a.Metrics[d.options.Metric], b.Metrics[d.options.Metric])
		if d.options.Mode == Max {
			return -c
		}
		return c
	})
	return ranked
}
