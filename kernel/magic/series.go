package magic

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
)

// series is a metric over the steps of a training run.
type series struct {
	Name   string
	Points []point
}

// point is a value at a step.
type point struct{ X, Y float64 }

// mostSeries is the maximum number of curves on a card.
const mostSeries = 4

// losses returns the metrics that are losses, those of the training first.
func losses(all []rundir.Measurement) []series {
	byName := map[string][]point{}
	for _, m := range all {
		for name, value := range m.Values {
			if isLoss(name) && !math.IsNaN(value) && !math.IsInf(value, 0) {
				byName[name] = append(byName[name], point{float64(m.Step), value})
			}
		}
	}
	var found []series
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if len(byName[name]) > 1 {
			found = append(found, series{name, byName[name]})
		}
	}
	slices.SortStableFunc(found, func(a, b series) int { return cmp.Compare(stage(a.Name), stage(b.Name)) })
	return found[:min(len(found), mostSeries)]
}

// isLoss reports whether a metric is a loss by its name: "train/loss", "val/generator_loss".
func isLoss(name string) bool {
	return strings.Contains(strings.ToLower(name[strings.LastIndex(name, "/")+1:]), "loss")
}

// stage returns the position of a metric's stage in the legend.
func stage(name string) int {
	switch {
	case strings.HasPrefix(name, "train"):
		return 0
	case strings.HasPrefix(name, "val"):
		return 1
	}
	return 2
}
