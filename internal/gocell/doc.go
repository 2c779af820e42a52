// Package gocell defines the language of a notebook's cell: its magics, shell lines and Go, as GoNB
// reads them. It executes nothing, and knows neither the kernel nor jobs: both parse cells with
// this package, so a cell means the same to both.
//
//	c := gocell.Parse("%keep n\nvar n = 1\n%%\nn++\nn")
//	c.Calls[0].Name()                        // "%keep"
//	f := c.File()                            // the Go file that the cell makes, line for line
//	value, ok := gocell.LastValue(f.Text())  // the n in the last line
//
// # Lines
//
// A line that begins with % or ! is a magic or a shell command; the prefix "//gonb:" may hide it
// from Go tools. A backslash at its end joins the next line to it. A line that begins with
// "package" is dropped. All other lines are Go. As in GoNB, this is decided by lines, not tokens: a
// line of a raw string or a comment that begins with % is a magic too. GoNB drops such a line from
// the string; [Cell.Remarks] finds it.
//
// A cell whose first line is one of the magics that take a whole cell, such as %%bash, has no Go
// and no other magics.
//
// # Magics
//
// [Magics] is the only list of magics. The kernel's help, completion and spelling hints, the effect
// of each magic in a job, and docs/magics.md come from it. A package that runs magics has a test
// that compares its handlers with the table.
package gocell
