package table

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonbatch/data/files"
)

// Config says what the columns are. Names and values are used without spaces around them.
type Config struct {
	// Name of the dataset. Default: files.Name of the pattern.
	Name string `json:"-"`
	// Inputs are the columns that are the input of an example, [n, len(Inputs)] float32. Default:
	// all columns that are neither labels nor the class, in the order of the first file.
	Inputs []string
	// Labels are the columns that are the labels, [n, len(Labels)] float32.
	Labels []string
	// Class is the column that has the class, if there are no Labels: [n, 1] int32.
	Class string
	// Classes are the names of the classes in that column; the label is a name's index in this
	// list. Default: the column has the numbers of the classes, from 0.
	Classes []string
	// Missing has, by column, the number for values that are missing: empty, NA, NaN or null. In
	// other columns a missing value is an error.
	Missing map[string]float32
	// Comma separates the values of a CSV file. Default: a comma.
	Comma rune
	// Columns are the names of the columns of CSV files that don't have them in their first line.
	Columns []string
	// Dir is the folder for the numbers. Default: the folder "derived" in data.Dir; those of files
	// of less than 16 MB together stay in memory.
	Dir string `json:"-"`
}

// kind is everything that the numbers depend on besides the files.
func (c Config) kind(format string) (string, error) {
	for column, value := range c.Missing {
		if !(math.Abs(float64(value)) <= math.MaxFloat32) {
			return "", fmt.Errorf("the number for missing values of %q must be finite, got %g", column, value)
		}
	}
	settings, err := json.Marshal(c)
	return fmt.Sprintf("table 1 %s %s", format, settings), err
}

// layout says which columns a row of numbers has: inputs, then labels or the class.
type layout struct {
	Config
	files   []files.File
	format  Format
	kind    string         // Everything that the numbers depend on besides the files.
	known   []string       // All columns of the files.
	used    []string       // Those of a row.
	classes map[string]int // By name.
}

// namedOnce refuses a column that is named twice, except for labels that are the inputs: a model
// may learn to restore its input.
func namedOnce(inputs, targets []string) error {
	all := slices.Concat(inputs, targets)
	if slices.Equal(slices.Sorted(slices.Values(inputs)), slices.Sorted(slices.Values(targets))) {
		all = inputs
	}
	for i, name := range all {
		if slices.Contains(all[:i], name) {
			return fmt.Errorf("the column %q is named twice in the inputs %q and the labels %q", name, inputs, targets)
		}
	}
	return nil
}

// newLayout returns the layout of files with these columns.
func newLayout(c Config, columns []string) (*layout, error) {
	l := &layout{Config: c, known: columns, classes: map[string]int{}}
	if len(c.Labels) > 0 && c.Class != "" {
		return nil, fmt.Errorf("there are both labels, %q, and a class, %q: name one of them", c.Labels, c.Class)
	}
	targets := slices.Clone(c.Labels)
	if c.Class != "" {
		targets = []string{c.Class}
	}
	if len(c.Inputs) == 0 {
		l.Inputs = slices.DeleteFunc(slices.Clone(columns), func(name string) bool { return slices.Contains(targets, name) })
	}
	if len(l.Inputs) == 0 {
		return nil, fmt.Errorf("no inputs: it has the columns %q", columns)
	}
	l.used = slices.Concat(l.Inputs, targets)
	if err := namedOnce(c.Inputs, targets); err != nil {
		return nil, err
	}
	for i, class := range c.Classes {
		if other, ok := l.classes[class]; ok {
			return nil, fmt.Errorf("class %d and class %d have the same name, %q", other, i, class)
		}
		l.classes[class] = i
	}
	for name := range c.Missing {
		if !slices.Contains(l.used, name) || name == c.Class {
			return nil, fmt.Errorf("there is a number for missing values of %q, which is neither an input nor a label", name)
		}
	}
	return l, l.check()
}

// check refuses columns that are not there, or can't be told apart.
func (l *layout) check() error {
	if slices.Contains(l.used, "") {
		return fmt.Errorf("a column has no name: list the columns to use in Config.Inputs, out of %q", l.known)
	}
	_, err := l.places(l.known)
	return err
}

// places returns where the columns of a row are in a file, which must have those of the first file,
// in any order.
func (l *layout) places(columns []string) ([]int, error) {
	for _, name := range columns {
		if !slices.Contains(l.known, name) {
			return nil, fmt.Errorf("it has the column %q, which the first file lacks: that has %q", name, l.known)
		}
	}
	places := make([]int, len(l.used))
	for i, name := range l.used {
		places[i] = slices.Index(columns, name)
		if places[i] < 0 {
			return nil, fmt.Errorf("it has no column %q, only %q%s", name, columns, commaHint(columns))
		}
		if slices.Contains(columns[places[i]+1:], name) {
			return nil, fmt.Errorf("it has two columns %q", name)
		}
	}
	return places, nil
}

// commaHint helps if a line wasn't split.
func commaHint(columns []string) string {
	if len(columns) == 1 && strings.ContainsAny(columns[0], ";\t|") {
		return ": set Config.Comma to what separates its values"
	}
	return ""
}
