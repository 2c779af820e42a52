package trainer_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"gonbatch/tests/page"
	"gonbatch/trainer"
)

// TestReference compares docs/reference.md with the fields of Config.
func TestReference(t *testing.T) {
	var config trainer.Config
	flags := flag.NewFlagSet("trainer", flag.ContinueOnError)
	config.AddFlags(flags)
	var text strings.Builder
	text.WriteString("| flag and YAML key | environment variable | |\n|---|---|---|\n")
	flags.VisitAll(func(f *flag.Flag) {
		variable := trainer.EnvPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, ".", "_"))
		_, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(&text, "| `%s` | `%s` | %s |\n", f.Name, variable, usage)
	})
	page.Section(t, "docs/reference.md", "trainer", text.String())
}
