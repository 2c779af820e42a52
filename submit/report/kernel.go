package report

import (
	"fmt"
	"io"
	"strings"
)

// Kernel says that the Jupyter kernel was installed or removed.
type Kernel struct {
	// State is "installed" or "removed", and Folder that of the kernelspec.
	State  string `json:"state"`
	Folder string `json:"folder"`
}

// Text says it in a line.
func (k Kernel) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "kernel %s: %s\n", k.State, k.Folder)
	return err
}

// Packages are those that notebooks import, which are now in the module cache and compiled.
type Packages struct {
	Packages []string `json:"packages"`
}

// Text says it in a line.
func (p Packages) Text(w io.Writer) error {
	_, err := fmt.Fprintln(w, "Go modules are in the module cache and compiled")
	return err
}

// Doctor says whether the kernel has everything it needs.
type Doctor struct {
	// OK is set if the kernel can run.
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
}

// Finding is what was found of one thing that the kernel needs.
type Finding struct {
	// Name is the thing's name, Found where or what it is.
	Name  string `json:"name"`
	Found string `json:"found,omitempty"`
	// Problem says what is wrong with it, and how to fix that; "" if nothing is.
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
