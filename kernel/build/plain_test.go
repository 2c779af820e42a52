package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/tests/goproxy"
)

// newPlain creates a session's module, with a proxy that has example.com/plots. That module needs
// an older version of example.com/shared than gonbatch requires.
func newPlain(t *testing.T) *module {
	t.Helper()
	proxy := goproxy.New(t)
	proxy.Add("example.com/shared", "v0.4.0", "", "shared.go", "package shared\n\nconst V = 4\n\nfunc Old() int { return V }\n")
	proxy.Add("example.com/shared", "v0.7.0", "", "shared.go", "package shared\n\nconst V = 7\n\nfunc New() int { return V }\n")
	proxy.Add("example.com/pin", "v1.0.0", "", "pin.go", "package pin\n\nconst V = 100\n")
	proxy.Add("example.com/either", "v1.0.0", "\nrequire example.com/pin v1.0.0\n", "either.go", "package either\n\nimport \"example.com/pin\"\n\nconst V = pin.V\n")
	proxy.Add("example.com/pin", "v1.2.0", "", "pin.go", "package pin\n\nconst V = 120\n")
	proxy.Add("example.com/pin", "v1.3.0", "", "pin.go", "package pin\n\nconst V = 130\n")
	for _, version := range []string{"v1.0.0", "v1.1.0"} {
		proxy.Add("example.com/plots", version, "\nrequire example.com/shared v0.4.0\n", "plots.go",
			"package plots\n\nimport \"example.com/shared\"\n\nconst Version = \""+version+"\"\n\nfunc Plot() int { return shared.Old() }\n")
	}
	c := newCell(t)
	c.opts.Environ = append(c.opts.Environ, "GOPROXY="+proxy.URL(), "GOMODCACHE="+t.TempDir(), "GOSUMDB=off", "GOFLAGS=-mod=mod -modcacherw -modfile=")
	source := filepath.Join(filepath.Dir(c.opts.Dir), "gonbatch")
	required := "go 1.26\n\nrequire (\n\texample.com/pin v1.2.0\n\texample.com/shared v0.7.0\n"
	goproxy.WriteFiles(t, source, "go.mod", "module gonbatch\n\n"+required+")\n",
		"kernel/display/display.go", "package display\n\nfunc Result(v ...any) { println(v[0].(int)) }\n",
		"trainer/trainer.go", "package trainer\n\nimport \"example.com/shared\"\n\nconst V = shared.V\n")
	session := required + "\tgonbatch v0.0.0-00010101000000-000000000000\n)\n\nreplace (\n\tgonbatch => " + source + "\n\tgonbatch v0.0.0-00010101000000-000000000000 => " + source + "\n)\n"
	c.write(t, "../seed/go.mod", "module session\n\n"+session)
	c.write(t, "go.mod", "module cell\n\n"+session)
	c.write(t, "../seed/gonbatch__show.go", "package main\n\nimport \"gonbatch/kernel/display\"\n\nfunc gonbatch__show(values ...any) { display.Result(values...) }\n")
	return c
}

// program returns a program with imports.
func program(body string, imports ...string) string {
	return "package main\n\nimport (\n\t\"" + strings.Join(imports, "\"\n\t\"") + "\"\n)\n\nfunc main() { " + body + " }\n"
}

// TestPlain: as in a job, a program that does not import gonbatch has the versions that its own
// modules ask for, even next to the kernel's own functions.
func TestPlain(t *testing.T) {
	const plots, pin, shared, trainer = "example.com/plots", "example.com/pin", "example.com/shared", "gonbatch/trainer"
	dir := t.TempDir()
	goproxy.WriteFiles(t, dir, "go.mod", "module example.com/local\n\ngo 1.26\n", "local.go", "package local\n\nconst V = 1\n",
		"trains/trains.go", "package trains\n\nimport \"gonbatch/trainer\"\n\nconst V = trainer.V\n")
	edit := func(t *testing.T, c *module, old, new string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(c.opts.Dir, "go.mod"))
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%v: no %q in\n%s", err, old, text)
		}
		c.write(t, "go.mod", strings.Replace(string(text), old, new, 1))
	}
	const requires = "require (\n"
	steps := []struct {
		name, main, want string
		byGo             bool
		before           func(t *testing.T, c *module)
	}{
		{name: "gonbatch's modules are enough", main: program("println(pin.V, shared.New())", pin, shared), want: "120 7\n", byGo: true},
		{name: "older than gonbatch's", main: program("println(plots.Plot())", plots), want: "4\n", byGo: true},
		{name: "cached", main: program("println(plots.Plot(), 0)", plots), want: "4 0\n", byGo: true},
		{name: "by plan", main: program("println(plots.Plot(), 1)", plots), want: "4 1\n"},
		{name: "with a value", main: program("gonbatch__show(plots.Plot())/*gonbatch__*/", plots), want: "4\n", byGo: true},
		{name: "with gonbatch's version of an import", main: program("println(plots.Plot(), pin.V)", plots, pin), want: "4 120\n", byGo: true},
		{name: "with a mistake", main: program("println(plots.Plot(), nothing)", plots), want: "# cell\n./main.go:7:37: undefined: nothing\n"},
		{
			name: "with a module of its own", main: program("println(plots.Plot(), local.V)", plots, "example.com/local"), want: "4 1\n", byGo: true,
			before: func(t *testing.T, c *module) {
				edit(t, c, requires, "require example.com/local v0.0.0\n\nreplace example.com/local => "+dir+"\n\n"+requires)
			},
		},
		{name: "a local package alone", main: program("println(local.V)", "example.com/local"), want: "1\n", byGo: true},
		{
			name: "the notebook's own version", main: program("println(plots.Plot(), pin.V)", plots, pin), want: "4 130\n", byGo: true,
			before: func(t *testing.T, c *module) { edit(t, c, "example.com/pin v1.2.0", "example.com/pin v1.3.0") },
		},
		{
			name: "the older version of an import", main: program("println(plots.Version)", plots), want: "v1.0.0\n", byGo: true,
			before: func(t *testing.T, c *module) { edit(t, c, "example.com/plots v1.1.0", "example.com/plots v1.0.0") },
		},
		{name: "a local package that imports gonbatch", main: program("println(local.V, trains.V)", "example.com/local", "example.com/local/trains"), want: "1 7\n", byGo: true},
		{name: "with gonbatch", main: program("println(trainer.V, pin.V)", trainer, pin), want: "7 130\n", byGo: true},
	}
	c := newPlain(t)
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			if step.before != nil {
				step.before(t, c)
			}
			c.write(t, "main.go", step.main)
			if got, byGo := c.run(t); got != step.want || byGo != step.byGo {
				t.Errorf("%q, by the go command: %v;\nwant %q, %v", got, byGo, step.want, step.byGo)
			}
		})
	}
	text, err := os.ReadFile(filepath.Join(c.opts.Dir, "go.mod"))
	if err != nil || !strings.Contains(string(text), "example.com/plots v1.0.0") {
		t.Errorf("the session's go.mod lacks the module that was found: %v\n%s", err, text)
	}
}

// TestPlainWithGonbatch: a program that also imports gonbatch has gonbatch's versions.
func TestPlainWithGonbatch(t *testing.T) {
	c := newPlain(t)
	c.write(t, "main.go", program("println(plots.Plot(), trainer.V)", "example.com/plots", "gonbatch/trainer"))
	if got, _ := c.run(t); !strings.Contains(got, "undefined: shared.Old") {
		t.Errorf("%q", got)
	}
}

// TestPlainWorkspace: the modules of go.work are in a plain program too.
func TestPlainWorkspace(t *testing.T) {
	c := newPlain(t)
	c.opts.Environ = append(c.opts.Environ, "GOWORK="+filepath.Join(c.opts.Dir, "go.work"), "GOFLAGS=-mod=readonly -modcacherw")
	goproxy.WriteFiles(t, c.opts.Dir, "go.work", "go 1.26\n\nuse (\n\t.\n\t../near\n)\n")
	c.write(t, "main.go", program("println(plots.Plot(), inner.Text)", "example.com/plots", "example.com/near/inner"))
	if got, _ := c.run(t); got != "4 old\n" {
		t.Errorf("%q", got)
	}
}

// TestPlainOffline: without a network, a program has gonbatch's modules. The next one doesn't look
// for others.
func TestPlainOffline(t *testing.T) {
	c := newPlain(t)
	for i, step := range []struct {
		main, proxy, want string
		byGo              bool
	}{
		{main: program("println(either.V, trainer.V)", "example.com/either", "gonbatch/trainer"), want: "120 7\n", byGo: true},
		{main: program("println(either.V)", "example.com/either"), proxy: "GOPROXY=off", want: "120\n", byGo: true},
		{main: program("println(either.V, 1)", "example.com/either"), proxy: "GOPROXY=off", want: "120 1\n"},
		{main: program("println(either.V, 2)", "example.com/either"), proxy: "GOPROXY=off", want: "120 2\n"},
		{main: program("println(either.V, pin.V)", "example.com/either", "example.com/pin"), want: "120 120\n", byGo: true},
	} {
		c := *c
		if step.proxy != "" {
			c.opts.Environ = append(slices.Clone(c.opts.Environ), step.proxy)
		}
		c.write(t, "main.go", step.main)
		if got, byGo := c.run(t); got != step.want || byGo != step.byGo {
			t.Errorf("program %d: %q, by the go command: %v; want %q, %v", i, got, byGo, step.want, step.byGo)
		}
	}
	c.opts.Environ = append(c.opts.Environ, "GOPROXY=off")
	c.write(t, "main.go", program("println(plots.Plot())", "example.com/plots"))
	if got, _ := c.run(t); !strings.Contains(got, "module lookup disabled by GOPROXY=off") {
		t.Errorf("%q", got)
	}
}
