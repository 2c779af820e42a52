package rundir

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
)

// Env is the environment of a program in a run. The submitting side encodes it with Vars, and the
// program decodes it with ReadEnv.
type Env struct {
	// Dir is the run directory; the zero Dir outside a run.
	Dir Dir
	// Cell is the name of the running cell; "main" if none is named.
	Cell string
	// Start is the number of the start: 1 for the first; 0 if it is not known.
	Start int
	// RequeueCode is the exit code with which the program asks to be started again; 0 if it can't.
	RequeueCode int
	// Stopped is the file of MarkStopped; "" if nobody looks for it.
	Stopped string
	// Checkpoints is the folder for checkpoints outside a run; empty if there is none.
	Checkpoints string
	// Devices, Platform, PluginDir, MPILibrary, OneDNN and Data are settings; empty if unset.
	Devices, Platform, PluginDir, MPILibrary, OneDNN, Data string
}

// Var is an environment variable.
type Var struct{ Name, Value string }

// String returns NAME=VALUE.
func (v Var) String() string { return v.Name + "=" + v.Value }

// Vars returns the variables of e that have a value, sorted by name.
func (e Env) Vars() []Var {
	noInstall := ""
	if e.PluginDir != "" {
		noInstall = "1"
	}
	vars := []Var{
		{EnvXLANoInstall, noInstall},
		{EnvData, e.Data}, {EnvDevices, e.Devices}, {EnvMPILibrary, e.MPILibrary}, {EnvOneDNN, e.OneDNN},
		{EnvPlatform, e.Platform}, {EnvPluginDir, e.PluginDir}, {EnvRequeue, number(e.RequeueCode, 0)}, {EnvRestarts, number(e.Start, -1)},
		{EnvDir, e.Dir.path}, {EnvCell, e.Cell}, {EnvStopped, e.Stopped}, {EnvXLAPath, e.PluginDir},
	}
	return slices.DeleteFunc(vars, func(v Var) bool { return v.Value == "" })
}

// number returns n + plus as text; "" if n is 0.
func number(n, plus int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n + plus)
}

// ReadEnv reads the variables that a launcher has set for this program.
func ReadEnv(getenv func(string) string) Env {
	e := Env{
		Cell: cmp.Or(getenv(EnvCell), "main"), Stopped: getenv(EnvStopped), Devices: getenv(EnvDevices), Platform: getenv(EnvPlatform),
		PluginDir: getenv(EnvPluginDir), MPILibrary: getenv(EnvMPILibrary), OneDNN: getenv(EnvOneDNN), Data: getenv(EnvData),
		Checkpoints: getenv(EnvCheckpoints),
	}
	if path := getenv(EnvDir); path != "" {
		e.Dir = At(path)
	}
	if n, err := strconv.Atoi(getenv(EnvRestarts)); err == nil {
		e.Start = n + 1
	}
	if code, err := strconv.Atoi(getenv(EnvRequeue)); err == nil && code > 0 && code < 256 {
		e.RequeueCode = code
	}
	return e
}

// InRun reports whether the program belongs to a run.
func (e Env) InRun() bool { return e.Dir != Dir{} }

// RunName returns the name of the run; "" outside a run.
func (e Env) RunName() string {
	if !e.InRun() {
		return ""
	}
	return e.Dir.Name()
}

// Superseded reports whether the run has been started again: the program belongs to a start that
// its scheduler has given up, as happens when it can't reach a node, and must no longer write in
// the run directory.
func (e Env) Superseded() bool {
	if !e.InRun() || e.Start == 0 {
		return false
	}
	n, err := CountStarts(e.Dir)
	return err == nil && n > 0 && n != e.Start
}

// MarkStopped records that the program was told to stop, has saved, and will end with RequeueCode.
func (e Env) MarkStopped() error {
	if e.Stopped == "" {
		return nil
	}
	f, err := os.OpenFile(e.Stopped, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("record that the training was told to stop: %w", err)
	}
	return f.Close()
}

// SortedVars returns the variables in a map, sorted by name.
func SortedVars(env map[string]string) []Var {
	var vars []Var
	for _, name := range slices.Sorted(maps.Keys(env)) {
		vars = append(vars, Var{name, env[name]})
	}
	return vars
}
