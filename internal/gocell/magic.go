package gocell

import (
	"slices"
	"strings"
)

// Runner is the part that runs a magic in a notebook.
type Runner string

// The runners.
const (
	// GoNB gets the magic unchanged.
	GoNB Runner = "GoNB"
	// Kernel is package kernel/cell, which rewrites the cell for GoNB or records a setting.
	Kernel Runner = "the kernel"
	// Submit is package kernel/magic, which runs the submit command.
	Submit Runner = "the submit command"
)

// Effect is the effect of a magic in a job.
type Effect string

// The effects.
const (
	// Applies means that the magic has a handler in submit/export.
	Applies Effect = "applies"
	// Once means that it becomes a script of the job, which runs once, on the first node.
	Once Effect = "runs once, on the first node"
	// Ignored means that it has a use only in a notebook.
	Ignored Effect = "ignored"
	// LeftOut is Ignored, with a warning that gives Why.
	LeftOut Effect = "left out, with a warning"
	// Refused means an error that gives Why.
	Refused Effect = "refused"
)

// Magic describes a magic.
type Magic struct {
	// Name includes all its %. Shell commands have the names "!" and "!*".
	Name string
	// Usage begins with Name. Help is a sentence or more.
	Usage, Help string
	Runner      Runner
	// WholeCell is set if the magic takes the whole cell and must be its first line.
	WholeCell bool
	InJob     Effect
	// ASCII is set if GoNB uses the arguments itself. It reads them byte by byte, so that any other
	// letter becomes several wrong ones.
	ASCII bool
	// Why continues a sentence that begins with Name: why a job works without the magic.
	Why string
	// Words are completions for the arguments. SubmitFlags adds the flags of the submit command.
	Words       []string
	SubmitFlags bool
}

// Names that other packages need.
const (
	Shell         = "!"
	ShellInModule = "!*"
	Exec          = "%exec"
	Test          = "%test"
	Wasm          = "%wasm"
	Reset         = "%reset"
	Remove        = "%remove"
	RemoveShort   = "%rm"
	Help          = "%help"
	Keep          = "%keep"
	Env           = "%env"
	Flags         = "%goflags"
	AllowFail     = "%allow_fail"
	Result        = "%result"
	SubmitCell    = "%%submit"
	Bash          = "%%bash"
	Sh            = "%%sh"
	Script        = "%%script"
	WriteFile     = "%%writefile"
)

// Lookup finds a magic by its name; it returns nil for an unknown magic.
func Lookup(name string) *Magic {
	for i := range Magics {
		if Magics[i].Name == name {
			return &Magics[i]
		}
	}
	return nil
}

// Names returns the sorted names that begin with a prefix, without shell commands.
func Names(prefix string) []string {
	var names []string
	for _, m := range Magics {
		if m.Name[0] == '%' && strings.HasPrefix(m.Name, prefix) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// HelpText returns the help, as Markdown, for the magics that GoNB's own help lacks.
func HelpText() string {
	var text strings.Builder
	text.WriteString("## Magics of the gonbatch kernel\n\n" +
		"A cell that ends in an expression shows its value; a semicolon after it hides it.\n\n")
	for _, name := range Names("%") {
		if m := Lookup(name); m.Runner != GoNB {
			text.WriteString("- `" + m.Usage + "`: " + m.Help + "\n")
		}
	}
	return text.String() + "\n"
}
