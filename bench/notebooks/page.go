package main

import (
	"fmt"
	"strings"
	"time"
)

// page is the page of the results.
func page(all map[string]result) string {
	var b strings.Builder
	b.WriteString(`# The notebooks in full size

<!-- make notebooks writes this page. -->

What each notebook reaches on one machine, by ` + "`submit --local`" + `. This command runs them all and
writes this page:

    make notebooks

The load is the machine's load average before the run: with a load above its number of cores, other
work ran at the same time, and the time is too long.

| notebook | result | goal | time | load |
|---|---|---|--:|--:|
`)
	for _, n := range notebooks {
		if r, ok := all[n.name]; ok {
			n.row(&b, r)
		}
	}
	workloads(&b)
	for _, n := range notebooks {
		if r, ok := all[n.name]; ok {
			n.section(&b, r)
		}
	}
	return b.String()
}

// workloads writes which benchmark stands for which notebook.
func workloads(b *strings.Builder) {
	b.WriteString(`
## Next to PyTorch

This page compares nothing. ` + "`make bench`" + ` measures the work of the notebooks next to PyTorch, on one
machine in one run; this workload of bench/ stands for each:

| notebook | workload |
|---|---|
`)
	for _, n := range notebooks {
		if n.file == "" {
			fmt.Fprintf(b, "| [%s](../%s) | %s |\n", n.name, n.path(), n.bench)
		}
	}
	b.WriteString(`
The MLP of step stands for no notebook: it shows a network whose gradients are large for its work.
[Performance](performance.md) sums the results up.
`)
}

// row writes a row of the table.
func (n notebook) row(b *strings.Builder, r result) {
	var goals []string
	for _, g := range n.goals {
		text := g.text
		switch {
		case r.Skipped != "":
		case g.met(r):
			text += ": reached"
		default:
			text += ": **missed**"
		}
		goals = append(goals, text)
	}
	summary, spent := r.summary(), (time.Duration(r.Seconds) * time.Second).String()
	if r.Skipped != "" {
		summary, spent = "not run", ""
	}
	fmt.Fprintf(b, "| [%s](../%s) | %s | %s | %s | %s |\n", n.name, n.path(), summary, strings.Join(goals, ", "), spent, r.Load)
}

// section writes what a notebook has printed and drawn.
func (n notebook) section(b *strings.Builder, r result) {
	fmt.Fprintf(b, "\n## %s\n\n    %s\n\n%s.\n", n.name, r.Command, r.Machine)
	if r.Skipped != "" {
		fmt.Fprintf(b, "\nIt was not run:\n\n    %s\n", r.Skipped)
	}
	for i, line := range r.Output {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
	}
	for i, picture := range r.Pictures {
		fmt.Fprintf(b, "\n![picture %d of %s](images/notebooks/%s)\n", i+1, n.name, picture)
	}
}
