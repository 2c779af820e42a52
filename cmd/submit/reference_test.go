package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/submit/config"
	"gonbatch/tests/page"
)

// TestReference checks that docs/reference.md describes the commands and their flags.
func TestReference(t *testing.T) {
	root := newRootCommand(&app{})
	var text strings.Builder
	describeCommand(&text, root, nil)
	page.Section(t, "docs/reference.md", "submit", text.String())
}

// describeCommand writes a command with its flags, then the commands below it. It only names flags
// that are also in shared.
func describeCommand(w *strings.Builder, cmd *cobra.Command, shared *pflag.FlagSet) {
	fmt.Fprintf(w, "### %s\n\n", cmd.CommandPath())
	long := cmp.Or(cmd.Long, cmd.Short+".")
	fmt.Fprintf(w, "%s\n\n```\n%s\n", strings.ReplaceAll(long, "<", `\<`), cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(w, "\n%s\n", strings.ReplaceAll(cmd.Example, "  submit", "submit"))
	}
	w.WriteString("```\n\n")
	describeFlags(w, cmd.Flags(), shared)
	if shared == nil {
		shared = cmd.Flags()
	}
	for _, child := range cmd.Commands() {
		if !child.Hidden && child.Name() != "completion" && child.Name() != "help" {
			describeCommand(w, child, shared)
		}
	}
}

// describeFlags writes a table of the flags, and the names of those that are also in shared.
func describeFlags(w *strings.Builder, flags, shared *pflag.FlagSet) {
	var own, same []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if shared != nil && shared.Lookup(f.Name) != nil && shared.Lookup(f.Name).Usage == f.Usage {
			same = append(same, "`--"+f.Name+"`")
			return
		}
		own = append(own, flagRow(f))
	})
	if len(own) > 0 {
		fmt.Fprintf(w, "| flag | value | |\n|---|---|---|\n%s\n\n", strings.Join(own, "\n"))
	}
	switch {
	case len(same) > 30:
		w.WriteString("It takes the flags of `submit`.\n\n")
	case len(same) > 0:
		fmt.Fprintf(w, "Flags shared with `submit`:\n%s.\n\n", strings.Join(same, ",\n"))
	}
}

func flagRow(f *pflag.Flag) string {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name += ", `-" + f.Shorthand + "`"
	}
	value, usage := pflag.UnquoteUsage(f)
	if value == "stringArray" {
		value = "string"
	}
	if d := f.DefValue; d != "" && d != "0" && d != "false" && d != "[]" && d != "0s" && !strings.Contains(usage, "default") {
		usage += " (default: " + d + ")"
	}
	if _, only := f.Annotations[config.FlagOnly]; only {
		usage += " *(command line only)*"
	}
	return fmt.Sprintf("| %s | %s | %s |", name, value, strings.ReplaceAll(usage, "|", `\|`))
}

// written matches a command of submit in a page: a line of a block, or code within a line.
var written = regexp.MustCompile("(?m)(?:^ *|`)(?:go run ./cmd/)?submit( [^`\n|#;&]*)")

// TestCommandsInPages finds flags in pages that no command has.
func TestCommandsInPages(t *testing.T) {
	for _, name := range page.All(t) {
		for _, match := range written.FindAllStringSubmatch(page.Read(t, name), -1) {
			checkWritten(t, name, strings.Fields(match[1]))
		}
	}
}

func checkWritten(t *testing.T, name string, words []string) {
	t.Helper()
	cmd, rest, err := newRootCommand(&app{}).Find(words)
	if err != nil {
		t.Errorf("%s: submit %s: %v", name, strings.Join(words, " "), err)
		return
	}
	for _, word := range rest {
		flag, _, _ := strings.Cut(word, "=")
		switch {
		case flag == "--":
			return
		case strings.HasPrefix(flag, "--") && flag != "--help" && cmd.Flags().Lookup(flag[2:]) == nil,
			len(flag) == 2 && flag[0] == '-' && cmd.Flags().ShorthandLookup(flag[1:]) == nil:
			t.Errorf("%s: submit %s: there is no flag %s", name, strings.Join(words, " "), flag)
		}
	}
}
