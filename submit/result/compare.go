package result

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Compare returns a table with a row for each training run of the runs: what differs between them,
// and the newest values of their metrics. Of the metrics of training, it has only the losses.
//
// What differs comes in this order: the notebook's parameters, as "-p rate"; its programs' flags,
// as "-lr"; the hyper-parameters that a program logged with Trainer.LogParams; those of the
// trainer's configuration and optimizer that are set in the code; and the others. A flag that sets
// a hyper-parameter of the same name, as those of Config.AddFlags do, has no column of its own.
//
//	result.Compare(result.Find("runs/mnist-*")...)
func Compare(runs ...Run) Table {
	var rows []row
	several := false
	for _, r := range runs {
		trainings := r.apart()
		several = several || len(trainings) > 1
		for _, one := range trainings {
			rows = append(rows, newRow(one))
		}
	}
	columns := []string{"run"}
	if several {
		columns = append(columns, "training")
	}
	columns = append(columns, differing(rows)...)
	metrics := map[string]bool{}
	var cells []map[string]string
	for _, r := range rows {
		for name := range r.metrics {
			metrics[name] = true
		}
		cells = append(cells, r.cells())
	}
	return newTable(append(columns, slices.Sorted(maps.Keys(metrics))...), cells)
}

// row is a training run in a table. Its settings have the names of their columns.
type row struct {
	run     Run
	given   map[string]string // The notebook's parameters and the flags.
	params  map[string]string // The hyper-parameters, nil if it has logged none.
	order   []string          // The names of params.
	metrics map[string]string
}

func newRow(r Run) row {
	m := r.Manifest()
	one := row{run: r, given: map[string]string{}, metrics: r.compared()}
	for name, value := range m.Parameters {
		one.given["-p "+name] = value
	}
	for name, value := range m.Flags {
		one.given["-"+name] = value
	}
	for _, p := range r.params() {
		if p.Name == "name" { // The training's, which has a column.
			continue
		}
		if one.params == nil {
			one.params = map[string]string{}
		}
		one.params[p.Name] = p.Value
		one.order = append(one.order, p.Name)
	}
	return one
}

func (r row) cells() map[string]string {
	all := maps.Clone(r.given)
	maps.Copy(all, r.params)
	maps.Copy(all, r.metrics)
	all["run"], all["training"] = r.run.Name(), r.run.training
	return all
}

// differing returns the columns of the settings that don't have the same value in all rows.
func differing(rows []row) (columns []string) {
	given := map[string]bool{}
	for _, r := range rows {
		for name := range r.given {
			given[name] = true
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(given), parametersFirst) {
		if differs(rows, name, func(r row) map[string]string { return r.given }) && !isParam(rows, name) {
			columns = append(columns, name)
		}
	}
	return append(columns, differingParams(rows)...)
}

// differingParams returns the hyper-parameters that differ between the rows that have any, by the
// first place of their family.
func differingParams(rows []row) (names []string) {
	all, places := map[string]bool{}, map[string]int{}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.params == nil })
	for _, r := range rows {
		for place, name := range r.order {
			all[name] = true
			if first, known := places[family(name)]; !known || place < first {
				places[family(name)] = place
			}
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(all), byPlace(places)) {
		if differs(rows, name, func(r row) map[string]string { return r.params }) {
			names = append(names, name)
		}
	}
	return names
}

// differs reports whether a setting has several values, or is missing in some rows only.
func differs(rows []row, name string, of func(row) map[string]string) bool {
	return slices.ContainsFunc(rows, func(r row) bool {
		first, known := of(rows[0])[name]
		value, ok := of(r)[name]
		return ok != known || value != first
	})
}

// isParam reports whether a flag only sets a hyper-parameter, which has its name and its value.
func isParam(rows []row, flag string) bool {
	name := strings.TrimPrefix(flag, "-")
	return !slices.ContainsFunc(rows, func(r row) bool {
		value, isGiven := r.given[flag]
		param, ok := r.params[name]
		return isGiven && (!ok || !same(value, param))
	})
}

// same reports whether two texts are the same value: "1e-3" is "0.001".
func same(a, b string) bool {
	x, badX := strconv.ParseFloat(a, 64)
	y, badY := strconv.ParseFloat(b, 64)
	return a == b || badX == nil && badY == nil && x == y
}

// parametersFirst sorts the notebook's parameters before flags.
func parametersFirst(a, b string) int {
	isA, isB := strings.HasPrefix(a, "-p "), strings.HasPrefix(b, "-p ")
	switch {
	case isA && !isB:
		return -1
	case isB && !isA:
		return 1
	}
	return strings.Compare(a, b)
}

// byPlace sorts names by the first places of their families, and then by name.
func byPlace(places map[string]int) func(a, b string) int {
	return func(a, b string) int {
		return cmp.Or(places[family(a)]-places[family(b)], strings.Compare(a, b))
	}
}

// family returns the first word of a name: "optimizer" for "optimizer.beta1".
func family(name string) string {
	first, _, _ := strings.Cut(name, ".")
	return first
}

// compared returns the newest values of the metrics that a table has.
func (r Run) compared() map[string]string {
	values := map[string]string{}
	for name, value := range r.Latest() {
		if strings.Contains(name, "/") && (!strings.HasPrefix(name, "train/") || strings.HasSuffix(name, "loss")) {
			values[name] = strconv.FormatFloat(value, 'g', 6, 64)
		}
	}
	return values
}

// apart returns the run once for each of its training runs.
func (r Run) apart() (all []Run) {
	for _, name := range r.Trainings() {
		all = append(all, r.Training(name))
	}
	if len(all) == 0 {
		return []Run{r}
	}
	return all
}
