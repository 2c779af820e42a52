package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"gonbatch/internal/machine"
)

// options are the tests' flags, one of each kind.
type options struct {
	Nodes    int
	Time     string
	Template string
	Follow   bool
	Env      []string
	DryRun   bool
	Target   string
}

func newFlags(o *options) *pflag.FlagSet {
	fs := pflag.NewFlagSet("submit", pflag.ContinueOnError)
	IntVar(fs, &o.Nodes, "nodes", 1, "")
	fs.StringVar(&o.Time, "time", "", "")
	fs.StringVar(&o.Template, "template", "", "")
	fs.BoolVar(&o.Follow, "follow", false, "")
	fs.StringArrayVar(&o.Env, "env", nil, "")
	fs.BoolVar(&o.DryRun, "dry-run", false, "")
	NonEmpty(fs, &o.Target, "name", "target", "", "", "")
	Mark(fs, FlagOnly, "dry-run")
	Mark(fs, Path, "template")
	return fs
}

// load writes the files, and loads the configuration from a notebook's folder deep in the project.
func load(t *testing.T, user, project string, environ, args []string) (options, *Config, string, error) {
	t.Helper()
	root := t.TempDir()
	start := filepath.Join(root, "project", "notebooks", "deep")
	if err := os.MkdirAll(start, 0o755); err != nil {
		t.Fatal(err)
	}
	userDir := filepath.Join(root, "user")
	if err := os.MkdirAll(userDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(userDir, fileName): user, filepath.Join(root, "project", fileName): project} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var o options
	fs := newFlags(&o)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, err := Load(fs, Places{Start: start, UserDir: userDir, Environ: environ})
	return o, c, root, err
}

func TestPrecedence(t *testing.T) {
	user, project := "nodes: 2\ntime: 10\n", "# ours\nnodes: 3\n"
	for _, tc := range []struct {
		name          string
		user, project string
		environ, args []string
		nodes         int
		origin        string
	}{
		{name: "default", nodes: 1, origin: "default"},
		{name: "user", user: user, nodes: 2, origin: "ROOT/user/submit.yaml:1"},
		{name: "project over user", user: user, project: project, nodes: 3, origin: "ROOT/project/submit.yaml:2"},
		{name: "environment over project", user: user, project: project, environ: []string{"SUBMIT_NODES=4"}, nodes: 4, origin: "SUBMIT_NODES"},
		{name: "flag over all", user: user, project: project, environ: []string{"SUBMIT_NODES=4"}, args: []string{"--nodes=5"}, nodes: 5, origin: "flag --nodes"},
		{name: "an empty variable sets nothing", project: project, environ: []string{"SUBMIT_NODES="}, nodes: 3, origin: "ROOT/project/submit.yaml:2"},
		{name: "a flag set to its default", project: project, args: []string{"--nodes=1"}, nodes: 1, origin: "flag --nodes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, c, root, err := load(t, tc.user, tc.project, tc.environ, tc.args)
			if err != nil {
				t.Fatal(err)
			}
			origin := strings.ReplaceAll(c.Origin("nodes"), root, "ROOT")
			if o.Nodes != tc.nodes || origin != tc.origin {
				t.Errorf("nodes %d from %q, want %d from %q", o.Nodes, origin, tc.nodes, tc.origin)
			}
		})
	}
}

func TestValues(t *testing.T) {
	for _, tc := range []struct {
		name, project string
		environ       []string
		want          options
	}{
		{name: "time stays as it is written", project: "time: 1:30:00", want: options{Nodes: 1, Time: "1:30:00"}},
		{name: "a number as a text", project: "time: 010", want: options{Nodes: 1, Time: "010"}},
		{name: "list", project: "env: [Ab=1, 'c=x, y \"z\"', d]", want: options{Nodes: 1, Env: []string{"Ab=1", `c=x, y "z"`, "d"}}},
		{name: "one text as a list", project: "env: A=1 2", want: options{Nodes: 1, Env: []string{"A=1 2"}}},
		{name: "list in a variable", environ: []string{"SUBMIT_ENV=A=1 2\nB=3"}, want: options{Nodes: 1, Env: []string{"A=1 2", "B=3"}}},
		{name: "bool", project: "follow: true", want: options{Nodes: 1, Follow: true}},
		{name: "path beside the file", project: "template: tmpl/x", want: options{Nodes: 1, Template: "ROOT/project/tmpl/x"}},
		{name: "absolute path", project: "template: /tmpl/x", want: options{Nodes: 1, Template: "/tmpl/x"}},
		{name: "a text that must not be empty", project: "target: h100", want: options{Nodes: 1, Target: "h100"}},
		{name: "the same in a variable", environ: []string{"SUBMIT_TARGET=h100"}, want: options{Nodes: 1, Target: "h100"}},
		{name: "empty file", project: "# nothing\n", want: options{Nodes: 1}},
		{name: "others' variables", environ: []string{"SUBMIT_HOST_KEY_FILE=x", "NODES=7"}, want: options{Nodes: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, root, err := load(t, "", tc.project, tc.environ, nil)
			if err != nil {
				t.Fatal(err)
			}
			got.Template = strings.ReplaceAll(got.Template, root, "ROOT")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const file = "ROOT/project/submit.yaml"
	for _, tc := range []struct {
		name, project string
		environ       []string
		want          string
	}{
		{name: "near key", project: "time: 1\nnode: 2\n", want: file + `:2: unknown key "node": did you mean "nodes"?`},
		{name: "underscore", project: "Nodes: 2\n", want: file + `:1: unknown key "Nodes": did you mean "nodes"?`},
		{name: "no near key", project: "colour: red\n", want: file + `:1: unknown key "colour": the keys are env, follow, nodes, target, template, time`},
		{name: "flag only", project: "dry-run: true\n", want: file + `:1: key "dry-run": only the command line can set it, with --dry-run`},
		{name: "not a number", project: "nodes: two\n", want: file + `:1: nodes: "two" is not a whole number`},
		{name: "not a bool", project: "follow: 7\n", want: file + `:1: follow: "7" is not true or false`},
		{name: "list for a number", project: "nodes: [1]\n", want: file + `:1: nodes: a list is not a whole number`},
		{name: "map for a list", project: "env: {A: 1}\n", want: file + `:1: env: a map of keys is not a list of strings`},
		{name: "list in a list", project: "env: [[A]]\n", want: file + `:1: env: a list in the list is not a string`},
		{name: "no value", project: "nodes:\n", want: file + `:1: nodes: has no value; give a whole number, or leave the key out`},
		{name: "twice", project: "nodes: 1\nnodes: 2\n", want: file + `:2: key "nodes" is set twice, first at ` + file + `:1`},
		{name: "an empty text", project: "target: ''\n", want: file + `:1: target: "" is not a name, or leave it out`},
		{name: "not YAML", project: "nodes: [\n", want: file + ": yaml: line 1: did not find expected node content"},
		{name: "not a map", project: "- nodes\n", want: file + `:1: not a list of "key: value" lines`},
		{name: "variable's type", environ: []string{"SUBMIT_NODES=x"}, want: `SUBMIT_NODES: "x" is not a whole number`},
		{name: "variable's slip", environ: []string{"SUBMIT_NODE=2"}, want: `unknown variable SUBMIT_NODE: did you mean SUBMIT_NODES?`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, root, err := load(t, "", tc.project, tc.environ, nil)
			if err == nil {
				t.Fatal("no error")
			}
			if got := strings.ReplaceAll(err.Error(), root, "ROOT"); got != tc.want {
				t.Errorf("error %s\nwant  %s", got, tc.want)
			}
		})
	}
}

func TestTheNearestProjectFileCounts(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, text := range map[string]string{root: "nodes: 2\ntime: 9\n", filepath.Join(root, "a"): "nodes: 3\n"} {
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var o options
	c, err := Load(newFlags(&o), Places{Start: deep})
	if err != nil || o.Nodes != 3 || o.Time != "" {
		t.Errorf("options %+v, %v", o, err)
	}
	if diff := cmp.Diff([]string{filepath.Join(root, "a", fileName)}, c.Files); diff != "" {
		t.Error(diff)
	}
}

// TestTrust: a file that another user can have written sets nothing, and a warning says why; the
// search continues in the folders above.
func TestTrust(t *testing.T) {
	if os.Geteuid() != 0 {
		machine.Lacks(t, "only root can give files away: run the tests as root")
	}
	for _, tc := range []struct {
		name     string
		uid, gid int
		mode     os.FileMode
		self     int
		want     string
	}{
		{name: "one's own", uid: 1000, gid: 100, mode: 0o644, self: 1000},
		{name: "root's", mode: 0o644, self: 1000},
		{name: "of one's own private group", uid: 1000, gid: 1000, mode: 0o664, self: 1000},
		{name: "a stranger's", uid: 1001, mode: 0o600, self: 1000, want: "it belongs to user 1001, and only your own or root's counts"},
		{name: "a user's, for root", uid: 1000, mode: 0o600, want: "it belongs to user 1000, and only your own or root's counts"},
		{name: "everybody's", uid: 1000, gid: 1000, mode: 0o666, self: 1000, want: "anybody may write it; chmod o-w it"},
		{name: "a group's", uid: 1000, gid: 100, mode: 0o664, self: 1000, want: "group 100 may write it; chmod g-w it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), fileName)
			link := filepath.Join(t.TempDir(), fileName)
			if err := errors.Join(os.WriteFile(path, []byte("nodes: 3"), 0o600), os.Chown(path, tc.uid, tc.gid), os.Chmod(path, tc.mode), os.Symlink(path, link), os.Lchown(link, tc.self, 0)); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{path, link} {
				data, why, err := readTrusted(name, tc.self)
				if why != tc.want || err != nil || (len(data) > 0) != (tc.want == "") {
					t.Errorf("%s: %q, %q, %v; want %q", name, data, why, err, tc.want)
				}
			}
		})
	}
	t.Run("a stranger's link to one's own file", func(t *testing.T) {
		path, link := filepath.Join(t.TempDir(), "other"), filepath.Join(t.TempDir(), fileName)
		if err := errors.Join(os.WriteFile(path, []byte("nodes: 3"), 0o600), os.Symlink(path, link), os.Lchown(link, 1001, 0)); err != nil {
			t.Fatal(err)
		}
		if _, why, err := readTrusted(link, 0); why == "" || err != nil {
			t.Errorf("%q, %v", why, err)
		}
	})
	t.Run("the search goes on", func(t *testing.T) {
		root := t.TempDir()
		deep := filepath.Join(root, "strange")
		strange := filepath.Join(deep, fileName)
		if err := errors.Join(os.Mkdir(deep, 0o755), os.WriteFile(filepath.Join(root, fileName), []byte("nodes: 3"), 0o600), os.WriteFile(strange, []byte("nodes: 4"), 0o600), os.Chown(strange, 1001, 1001)); err != nil {
			t.Fatal(err)
		}
		var o options
		c, err := Load(newFlags(&o), Places{Start: deep})
		want := []string{strange + " is not used: it belongs to user 1001, and only your own or root's counts"}
		if err != nil || o.Nodes != 3 || !cmp.Equal(c.Warnings, want) || !cmp.Equal(c.Files, []string{filepath.Join(root, fileName)}) {
			t.Errorf("nodes %d, warnings %q, files %q, %v", o.Nodes, c.Warnings, c.Files, err)
		}
	})
}

// TestSome: mistakes in other options don't stop a command that has only one of the options.
func TestSome(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, fileName), []byte("nods: 3\ntime: 5\ndry-run: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var o options
	all, only := newFlags(&o), pflag.NewFlagSet("", pflag.ContinueOnError)
	only.AddFlag(all.Lookup("time"))
	c, err := Load(only, Places{Start: root, Environ: []string{"SUBMIT_NODS=3", "SUBMIT_NODES=x"}, Some: true})
	if err != nil || o.Time != "5" || len(c.Warnings) != 0 {
		t.Errorf("time %q, %v", o.Time, err)
	}
}

// TestNearVariables: a name with one wrong letter is an error, and one with more gets a warning.
func TestNearVariables(t *testing.T) {
	for _, tc := range []struct{ variable, err, warning string }{
		{"SUBMIT_NODS=1", "unknown variable SUBMIT_NODS: did you mean SUBMIT_NODES?", ""},
		{"SUBMIT_MODE=1", "", "unknown variable SUBMIT_MODE: did you mean SUBMIT_NODES?"},
		{"SUBMIT_HOOKS_FOLDER=1", "", ""},
	} {
		var o options
		c, err := Load(newFlags(&o), Places{Start: t.TempDir(), Environ: []string{tc.variable}})
		switch {
		case tc.err != "":
			if err == nil || err.Error() != tc.err {
				t.Errorf("%s: %v", tc.variable, err)
			}
		case err != nil, strings.Join(c.Warnings, "\n") != tc.warning:
			t.Errorf("%s: %v, warnings %q", tc.variable, err, c.Warnings)
		}
	}
}

// TestExplain: an error about values says where they were set, unless that was the command line.
func TestExplain(t *testing.T) {
	_, cfg, root, err := load(t, "time: 5x\n", "env: [A=1]\nfollow: true\n", []string{"SUBMIT_TEMPLATE=x"}, []string{"--nodes=0"})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New(`--nodes=0 --time="5x" --env=A --env=B --template=x --target=t --other=1 --follow`)
	want := cause.Error() + "\ntime is set by " + filepath.Join(root, "user", fileName) + ":1\nenv is set by " +
		filepath.Join(root, "project", fileName) + ":1\ntemplate is set by SUBMIT_TEMPLATE"
	if got := cfg.Explain(cause); got.Error() != want || !errors.Is(got, cause) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, cause := cfg.Explain(errors.New("run x: failed\n  last lines:\n  --time=5")), "run x: failed\n  last lines:\n  --time=5"; got.Error() != cause {
		t.Errorf("a log's line is explained: %s", got)
	}
	if got := cfg.Explain(nil); got != nil {
		t.Errorf("no error became %v", got)
	}
}

// TestHome: ~ in a path is the home folder, wherever the path comes from, and only there.
func TestHome(t *testing.T) {
	for _, tt := range []struct {
		project, env, arg string
		want              string
	}{
		{project: "template: ~/a\n", want: "/home/me/a"},
		{env: "SUBMIT_TEMPLATE=~/a", want: "/home/me/a"},
		{arg: "--template=~/a", want: "/home/me/a"},
		{arg: "--template=~", want: "/home/me"},
		{arg: "--template=~you/a", want: "~you/a"},
		{arg: "--template=a~/b", want: "a~/b"},
	} {
		got, _, _, err := load(t, "", tt.project, []string{"HOME=/home/me", tt.env}, strings.Fields(tt.arg))
		if err != nil || got.Template != tt.want {
			t.Errorf("%+v: %q, %v", tt, got.Template, err)
		}
	}
	got, _, _, err := load(t, "", "nodes: 010\n", nil, nil)
	if err != nil || got.Nodes != 10 {
		t.Errorf("nodes: 010 is %d, %v", got.Nodes, err)
	}
}

// TestIgnored: a link that leads nowhere is an error, and a variable for an option that only the
// command line can set a warning.
func TestIgnored(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/nowhere/x.yaml", filepath.Join(dir, fileName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(newFlags(&options{}), Places{Start: dir}); err == nil || !strings.Contains(err.Error(), fileName+" is a link to /nowhere/x.yaml, which isn't there") {
		t.Errorf("a dangling link: %v", err)
	}
	_, c, _, err := load(t, "", "", []string{"SUBMIT_DRY_RUN=1"}, nil)
	if err != nil || !cmp.Equal(c.Warnings, []string{"SUBMIT_DRY_RUN is not used: only the command line can set --dry-run"}) {
		t.Errorf("%v, %v", c.Warnings, err)
	}
}
