package run

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gonbatch/submit"
)

// axis is a parameter or a flag of a sweep, with its values, or with the range of its random
// values.
type axis struct {
	name   string
	values []string
	random interval
}

// point is a run of a sweep: a value for each axis.
type point []setting

// setting is a value of a parameter or a flag.
type setting struct{ name, value string }

// String describes the point: "lr=1e-3 seed=2".
func (p point) String() string {
	words := make([]string, len(p))
	for i, s := range p {
		words[i] = s.name + "=" + s.value
	}
	return strings.Join(words, " ")
}

// maxPoints limits a sweep, most of all one with a typing mistake.
const maxPoints = 1000

// parseAxes parses NAME=VALUE,VALUE,... or NAME=FIRST..LAST, which is a range of whole numbers. If
// random is set, values are drawn from a range, which may be one of real numbers, or LOW..HIGH in
// log(...).
func parseAxes(texts []string, random bool) (axes []axis, err error) {
	total := 1.0
	for _, text := range texts {
		name, list, ok := strings.Cut(text, "=")
		if !ok || name == "" || list == "" {
			return nil, submit.Usagef("--sweep=%q: give NAME=VALUE,VALUE or NAME=FIRST..LAST, such as lr=1e-3,1e-2 or seed=1..5", text)
		}
		for _, earlier := range axes {
			if earlier.name == name {
				return nil, submit.Usagef("--sweep=%q: %s is there twice: give all of its values at once", text, name)
			}
		}
		a := axis{name: name}
		if random {
			a.random, err = parseInterval(list)
		}
		if err == nil && a.random == (interval{}) {
			a.values, err = parseValues(list)
		}
		if err != nil {
			return nil, submit.Usagef("--sweep=%q: %w", text, err)
		}
		total *= float64(len(a.values))
		if total > maxPoints && !random {
			return nil, submit.Usagef("--sweep: more than %d runs", maxPoints)
		}
		axes = append(axes, a)
	}
	return axes, nil
}

// parseValues splits a list at the commas that are in no brackets or quotes, and expands ranges.
func parseValues(list string) (values []string, err error) {
	depth, quote, from := 0, rune(0), 0
	for i, r := range list + "," {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case strings.ContainsRune("[{(", r):
			depth++
		case strings.ContainsRune("]})", r):
			depth--
		case r == ',' && depth == 0:
			some, err := expandRange(strings.TrimSpace(list[from:i]))
			if err != nil {
				return nil, err
			}
			values = append(values, some...)
			from = i + 1
		}
	}
	if from <= len(list) {
		return nil, fmt.Errorf("a bracket or a quote is not closed")
	}
	for i, value := range values {
		for _, earlier := range values[:i] {
			if earlier == value {
				return nil, fmt.Errorf("the value %s is there twice", value)
			}
		}
	}
	return values, nil
}

// expandRange returns the whole numbers of a range FIRST..LAST, or the value itself.
func expandRange(value string) ([]string, error) {
	if value == "" {
		return nil, fmt.Errorf("a value is empty")
	}
	if in, err := parseInterval(value); err != nil || in != (interval{}) && (in.log || !in.whole) {
		return nil, cmp.Or(err, fmt.Errorf("%s is a range of real numbers, from which --random N draws", value))
	}
	first, last, isRange := strings.Cut(value, "..")
	from, err := strconv.Atoi(first)
	to, lastErr := strconv.Atoi(last)
	if !isRange || err != nil || lastErr != nil {
		return []string{value}, nil
	}
	if to < from || to-from >= maxPoints {
		return nil, fmt.Errorf("the range %s must go up, and have at most %d numbers", value, maxPoints)
	}
	var values []string
	for n := from; n <= to; n++ {
		values = append(values, strconv.Itoa(n))
	}
	return values, nil
}

// grid returns all combinations of the axes' values; the last axis changes fastest.
func grid(axes []axis) []point {
	points := []point{nil}
	for _, a := range axes {
		var more []point
		for _, p := range points {
			for _, value := range a.values {
				more = append(more, append(p[:len(p):len(p)], setting{a.name, value}))
			}
		}
		points = more
	}
	return points
}
