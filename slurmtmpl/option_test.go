package slurmtmpl

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gonbatch/submit"
)

// TestParseDirective: a directive that submit cannot support is refused with the reason, however it
// is written.
func TestParseDirective(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"--exclusive", ""},
		{"--mail-type=END", ""},
		{"--export=NONE", ""},
		{"--gpus=2", ""},
		{"--wait-all-nodes=1", ""},
		{"--time-min=5", ""},
		{"--gres=nvme:1", ""},
		{"exclusive", `--directive="exclusive": give --name or --name=value, such as --directive=--nice=100`},
		{"--time=5", `--directive="--time=5": set it with --time`},
		{"--output=x", `--directive="--output=x": submit sets --output itself`},
		{"--gres=gpu:2", `--directive="--gres=gpu:2": request GPUs with --gpus-per-node`},
		{"--no-requeue", `--directive="--no-requeue": set it with --max-restarts`},
		{"--signal=INT@10", `--directive="--signal=INT@10": set it with --signal-lead`},
		{"--comment=a\n#SBATCH --uid=0", `--directive="--comment=a\n#SBATCH --uid=0": has the control character '\n'; give a value on one line`},
		{"--wait", `--directive="--wait": --wait is refused: submit would hang until the job ends; --follow waits for it and shows its log`},
		{"-W", `--directive="-W": --wait is refused: submit would hang`},
		{"--parsable", `--parsable is refused: submit reads what sbatch prints`},
		{"--wrap=true", `--wrap is refused: the job runs the notebook`},
		{"--wra=true", `--directive="--wra=true": sbatch reads --wra as --wrap; write it out`},
		{"--test-only", `--test-only is refused: sbatch would queue nothing`},
		{"--test", `sbatch reads --test as --test-only; write it out`},
		{"--array=1-3", `--array is refused: a run directory has one job`},
		{"-a1-3", `--directive="-a1-3": --array is refused`},
		{"-a 1-3", `--array is refused`},
		{"--help", `--help is refused`},
		{"-V", `--version is refused`},
		{"-t5", `--directive="-t5": set it with --time`},
		{"-o x", `--directive="-o x": submit sets --output itself`},
		{"--outp=x", `--directive="--outp=x": sbatch reads --outp as --output; write it out`},
		{"--tim=5", `sbatch reads --tim as --time; write it out`},
		{"-x n1", `--directive="-x n1": give --name or --name=value, such as --directive=--nice=100`},
	} {
		t.Run(tc.text, func(t *testing.T) {
			_, err := parseDirective(tc.text)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (tc.want == "") != (err == nil) || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

// TestValidate: all mistakes are reported at once.
func TestValidate(t *testing.T) {
	spec := submit.JobSpec{Directives: []string{"--exclusive", "--wait", "x"}, SignalLead: 19 * time.Hour}
	want := []string{`--directive="--wait"`, `--directive="x"`, "--signal-lead=19h0m0s: SLURM takes at most 18h"}
	got := strings.Split(Validate(spec).Error(), "\n")
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%q, want %q", got, want)
	}
}
