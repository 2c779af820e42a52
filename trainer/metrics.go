package trainer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonbatch/distributed"
)

// Metrics maps names such as "val/loss" and "test/accuracy" to values.
type Metrics map[string]float64

// metricName returns the name under which a metric is logged: its words in lower case, without the
// "mean" that GoMLX puts in front; "val/loss", "train/generator_loss".
func metricName(stage, name, objective string) string {
	words := strings.Fields(strings.ToLower(objective + " " + strings.ReplaceAll(name, "/", " ")))
	kept := words[:0]
	for _, word := range words {
		if word != "mean" && word != "batch" {
			kept = append(kept, strings.Map(alphanumeric, word))
		}
	}
	return stage + "/" + strings.Join(kept, "_")
}

func alphanumeric(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
		return r
	}
	return '_'
}

func named(stage string, all distributed.Metrics) Metrics {
	values := Metrics{}
	for _, m := range all {
		values[metricName(stage, m.Name, "")] = m.Value
	}
	return values
}

// String returns the metrics sorted by name: "val/accuracy 0.9871, val/loss 0.0412".
func (m Metrics) String() string {
	parts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %.4f", name, m[name]))
	}
	return strings.Join(parts, ", ")
}
