// Package gocell has the language of a notebook's cell: its magics, shell lines and Go, as GoNB
// reads them. It runs nothing, and knows neither the kernel nor jobs: both read cells by it, so a
// cell means the same to them.
//
//	c := gocell.Parse("%keep n\nvar n = 1\n%%\nn++\nn")
//	c.Calls[0].Name()                        // "%keep"
//	f := c.File()                            // the Go file that the cell makes, line for line
//	value, ok := gocell.LastValue(f.Text())  // the n in the last line
//
// # Lines
//
// A line that begins with % or ! is a magic or a shell command; it may hide from Go tools after
// "//gonb:". A backslash at its end joins the next line to it. A line that begins with "package" is
// dropped. All other lines are Go. As in GoNB, lines count, not tokens: a line of a raw string or a
// comment that begins with % is a magic too.
//
// A cell whose first line has one of the magics that take a whole cell, such as %%bash, has no Go
// and no other magics.
//
// # Magics
//
// [Magics] is the only list of magics. The kernel's help, completion and spelling hints, what a job
// does with each of them, and docs/magics.md come from it. A package that runs magics has a test
// that compares its handlers with the table.
package gocell
