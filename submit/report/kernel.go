package report

import (
	"fmt"
	"io"
	"strings"
)

// Kernel reports that the Jupyter kernel was installed or removed.
type Kernel struct {
	// State is "installed" or "removed", and Folder the kernelspec's folder.
	State  string `json:"state"`
	Folder string `json:"folder"`
}

// Text writes the report in one line.
func (k Kernel) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "kernel %s: %s\n", k.State, k.Folder)
	return err
}

// Packages are the packages that notebooks import, now in the module cache and compiled.
type Packages struct {
	Packages []string `json:"packages"`
}

// Text writes the report in one line.
func (p Packages) Text(w io.Writer) error {
	_, err := fmt.Fprintln(w, "Go modules are in the module cache and compiled")
	return err
}

// Doctor reports whether the kernel has everything it needs.
type Doctor struct {
	// OK is set if the kernel can run.
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
}

// Finding is the state of one thing that the kernel needs.
type Finding struct {
	// Name is the thing's name, and Found its place or version.
	Name  string `json:"name"`
	Found string `json:"found,omitempty"`
	// Problem describes what is wrong and how to fix it; "" if nothing is.
	Problem string `json:"problem,omitempty"`
	// Optional is set if the kernel runs without it.
	Optional bool `json:"optional,omitempty"`
}

// Text lists the findings.
func (d Doctor) Text(w io.Writer) error {
	var text strings.Builder
	for _, f := range d.Findings {
		switch {
		case f.Problem == "":
			fmt.Fprintf(&text, "ok       %-18s %s\n", f.Name, f.Found)
		case f.Optional:
			fmt.Fprintf(&text, "missing  %-18s %s\n", f.Name, f.Problem)
		default:
			fmt.Fprintf(&text, "WRONG    %-18s %s\n", f.Name, f.Problem)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
