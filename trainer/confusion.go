package trainer

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// Confusion is a classifier's confusion matrix. Counts[i][j] is the number of examples of class i
// that were predicted as class j. A metric of a class is NaN if there are no examples to compute it
// from.
type Confusion struct {
	Classes []string // Names, by number.
	Counts  [][]int
}

// newConfusion returns an empty matrix of these classes.
func newConfusion(classes []string) *Confusion {
	c := &Confusion{Classes: classes, Counts: make([][]int, len(classes))}
	for i := range classes {
		c.Counts[i] = make([]int, len(classes))
	}
	return c
}

// Examples returns the number of examples of a class.
func (c *Confusion) Examples(class int) (n int) {
	for _, count := range c.Counts[class] {
		n += count
	}
	return n
}

// predicted returns the number of examples that were predicted as a class.
func (c *Confusion) predicted(class int) (n int) {
	for _, row := range c.Counts {
		n += row[class]
	}
	return n
}

// Accuracy returns the fraction of all examples that were classified correctly.
func (c *Confusion) Accuracy() float64 {
	right, all := 0, 0
	for class, row := range c.Counts {
		right += row[class]
		all += c.Examples(class)
	}
	return fraction(right, all)
}

// Precision returns the fraction of the examples predicted as a class that belong to it.
func (c *Confusion) Precision(class int) float64 {
	return fraction(c.Counts[class][class], c.predicted(class))
}

// Recall returns the fraction of a class's examples that were predicted as that class.
func (c *Confusion) Recall(class int) float64 {
	return fraction(c.Counts[class][class], c.Examples(class))
}

// F1 returns the harmonic mean of a class's precision and recall.
func (c *Confusion) F1(class int) float64 {
	return fraction(2*c.Counts[class][class], c.predicted(class)+c.Examples(class))
}

// MacroF1 returns the mean of the classes' F1. It leaves out classes that have no examples and were
// never predicted.
func (c *Confusion) MacroF1() float64 {
	sum, n := 0.0, 0
	for class := range c.Counts {
		if f1 := c.F1(class); !math.IsNaN(f1) {
			sum, n = sum+f1, n+1
		}
	}
	return sum / float64(n)
}

func fraction(part, whole int) float64 { return float64(part) / float64(whole) }

// String returns a table with a line for each class: how many of its examples were predicted as
// each class, and its metrics.
func (c *Confusion) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "class\t%s\texamples\tprecision\trecall\tF1\t\n", strings.Join(c.Classes, "\t"))
	for class, row := range c.Counts {
		fmt.Fprintf(w, "%s\t", c.Classes[class])
		for _, count := range row {
			fmt.Fprintf(w, "%d\t", count)
		}
		fmt.Fprintf(w, "%d\t%.4f\t%.4f\t%.4f\t\n", c.Examples(class), c.Precision(class), c.Recall(class), c.F1(class))
	}
	_ = w.Flush() // A strings.Builder never fails.
	fmt.Fprintf(&text, "accuracy %.4f, macro F1 %.4f\n", c.Accuracy(), c.MacroF1())
	return text.String()
}

// add adds counts, which may cover fewer classes.
func (c *Confusion) add(counts [][]int) {
	for i, row := range counts {
		for j, count := range row {
			c.Counts[i][j] += count
		}
	}
}
