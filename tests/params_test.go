package tests

import (
	"encoding/json"
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/submit/report"
	"gonbatch/trainer"
)

// TestParamsOfTrainer checks that submit params lists the flags that the trainer's Config defines.
func TestParamsOfTrainer(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	name := u.write(t, "flags.ipynb", "import (\n\t\"flag\"\n\t\"gonbatch/trainer\"\n)\nvar lr = flag.Float64(\"lr\", 0.1, \"rate\")\nvar config trainer.Config\n"+
		"func init_flags() { config.AddFlags(flag.CommandLine) }", "%%\nfmt.Println(config)")
	var listed report.Params
	ok(t, json.Unmarshal([]byte(u.mustSubmit(t, "params", "--json", name)), &listed))
	got, want := map[string]bool{}, map[string]bool{"lr": true}
	for _, f := range listed.Flags {
		got[f.Name] = f.Cell == 1
	}
	set := flag.NewFlagSet("", flag.ContinueOnError)
	new(trainer.Config).AddFlags(set)
	set.VisitAll(func(f *flag.Flag) { want[f.Name] = true })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags -want +got:\n%s", diff)
	}
}
