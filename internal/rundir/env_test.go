package rundir

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEnv: a program decodes what a launcher has encoded for it.
func TestEnv(t *testing.T) {
	for name, want := range map[string]Env{
		"a first start": {Dir: At("/runs/x"), Cell: "train", Start: 1, RequeueCode: RequeueCode, Stopped: "/runs/x/stopped-1",
			Devices: "all", Platform: "cpu", PluginDir: "/p", MPILibrary: "libmpi.so", OneDNN: "off", Data: "/d"},
		"a restart":        {Dir: At("/runs/x"), Cell: "main", Start: 3},
		"outside of a run": {Cell: "main"},
	} {
		env := map[string]string{}
		for _, v := range want.Vars() {
			env[v.Name] = v.Value
		}
		got := ReadEnv(func(name string) string { return env[name] })
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Dir{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.InRun() != (want.Dir != Dir{}) {
			t.Errorf("%s: InRun is %v", name, got.InRun())
		}
	}
}

func TestReadEnvIgnoresNonsense(t *testing.T) {
	env := map[string]string{EnvRequeue: "256", EnvRestarts: "x"}
	got := ReadEnv(func(name string) string { return env[name] })
	if got != (Env{Cell: "main"}) || got.RunName() != "" {
		t.Errorf("got %+v", got)
	}
}
