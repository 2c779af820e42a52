package kernel

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/build"
	"gonbatch/kernel/tool"
)

// templates are the programs and Go files of a session.
//
//go:embed *.tmpl
var templates embed.FS

// sessionFiles are the files in a session's folder that are made from templates.
var sessionFiles = map[string]string{
	"bin/go": "go.sh.tmpl", "bin/gopls": "gopls.sh.tmpl", "bin/goimports": "goimports.sh.tmpl", "bin/status": "status.sh.tmpl",
	"seed/program": "program.sh.tmpl", "seed/ranks": "ranks.sh.tmpl", "seed/record": "record.sh.tmpl",
	"seed/gonbatch__show.go": "show.go.tmpl", "seed/gonbatch__timeit.go": "timeit.go.tmpl", "seed/gonbatch__devices.go": "devices.go.tmpl",
}

// sessionPrefix begins the name of a session's folder.
const sessionPrefix = "gonbatch-kernel-"

// session is the private folder of one run of the kernel:
//
//	bin/go      what GoNB starts as the go command
//	bin/gopls   hides the user's gopls from GoNB: the kernel asks gopls itself
//	bin/goimports  runs goimports for GoNB, and records the time if times are wanted
//	bin/status  runs the shell commands of cells and writes their exit statuses to the file status
//	seed/       the go.mod and go.sum of each session's module, and other files to put into it
//	plans/      plans for building cells' programs, of package build
//	cell/       what a cell's program leaves for the kernel, such as the value to show
//	keep/       the values of the variables that survive a cell
//	stdin       the standard input of cells: a link to /dev/null or to stdin-pipe
//	tmp/        TMPDIR of GoNB and its cells, where GoNB makes its module
type session struct {
	dir string
}

// newSession fills the folder; close removes it.
func newSession(sourceDir string, t tools, dir string) (_ *session, err error) {
	s := &session{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for _, sub := range []string{"bin", "seed", "plans", "cell", "keep", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	if err := s.writeSeed(sourceDir); err != nil {
		return nil, err
	}
	return s, s.writeFiles(t)
}

func (s *session) bin() string   { return filepath.Join(s.dir, "bin") }
func (s *session) seed() string  { return filepath.Join(s.dir, "seed") }
func (s *session) plans() string { return filepath.Join(s.dir, "plans") }
func (s *session) cell() string  { return filepath.Join(s.dir, "cell") }
func (s *session) keep() string  { return filepath.Join(s.dir, "keep") }
func (s *session) tmp() string   { return filepath.Join(s.dir, "tmp") }

func (s *session) statusProgram() string { return filepath.Join(s.bin(), "status") }
func (s *session) statusFile() string    { return filepath.Join(s.dir, "status") }

// stdin is the link that cells read: to /dev/null, or to the pipe if a client can be asked for
// input.
func (s *session) stdin() string     { return filepath.Join(s.dir, "stdin") }
func (s *session) stdinPipe() string { return filepath.Join(s.dir, "stdin-pipe") }

// moduleDir returns the folder in which GoNB composes the cells' programs.
func (s *session) moduleDir() (string, error) {
	dirs, err := filepath.Glob(filepath.Join(s.tmp(), "gonb_*", "go.mod"))
	if err != nil || len(dirs) == 0 {
		return "", errors.New("GoNB has made no module yet")
	}
	return filepath.Dir(dirs[0]), nil
}

// showMain restores the program that was hidden in GoNB's module while it ran.
func (s *session) showMain() error {
	dir, err := s.moduleDir()
	if err != nil {
		return nil // Nothing was built.
	}
	return build.ShowMain(dir)
}

func (s *session) close() error { return os.RemoveAll(s.dir) }

func (s *session) writeSeed(sourceDir string) error {
	mod, err := moduleText(sourceDir)
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(sourceDir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(s.seed(), "go.mod"), mod, 0o644),
		os.WriteFile(filepath.Join(s.seed(), "go.sum"), sum, 0o644))
}

func (s *session) writeFiles(t tools) error {
	values := strings.NewReplacer(
		"{{go}}", shellescape.Quote(t.goCommand), "{{goimports}}", shellescape.Quote(t.goimports), "{{self}}", shellescape.Quote(t.self),
		"{{environ}}", strings.Join(tool.Environ(), " "), "{{platform}}", strings.Join(tool.Platform(), " "),
		"{{celldir}}", rundir.EnvCellDir, "{{record}}", rundir.EnvRecord, "{{variable}}", rundir.EnvDevices,
		"{{session}}", shellescape.Quote(s.dir), "{{seed}}", shellescape.Quote(s.seed()), "{{cell}}", shellescape.Quote(s.cell()),
		"{{stdin}}", shellescape.Quote(s.stdin()), "{{status}}", shellescape.Quote(s.statusFile()))
	for name, template := range sessionFiles {
		if name == "bin/gopls" && t.gopls == "" {
			continue
		}
		text, err := templates.ReadFile(template)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(values.Replace(string(text))), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(os.Symlink(os.DevNull, s.stdin()), os.WriteFile(s.statusFile(), nil, 0o644))
}

// tools are the programs that a session needs; without gopls there is no completion.
type tools struct {
	goCommand, gonb, goimports, gopls string
	// self is the kernel's own program, the submit command. It builds cells, as SELF kernel build,
	// and runs them, as SELF kernel stream.
	self string
}

// findTools looks for the tools where the kernelspec says, on PATH, next to this program, and where
// the go command installs programs.
func findTools(env environment, sourceDir string) (tools, error) {
	goCommand, err := findGo(env)
	if err != nil {
		return tools{}, err
	}
	dirs := toolPath(env, goCommand, sourceDir)
	found := tools{goCommand: goCommand}
	if found.self, err = os.Executable(); err != nil {
		return tools{}, err
	}
	for name, path := range map[string]*string{"gonb": &found.gonb, "goimports": &found.goimports} {
		if *path, err = lookPath(name, dirs); err != nil {
			return tools{}, fmt.Errorf("%s not found in %s: run submit kernel install", name, dirs)
		}
	}
	if gopls, err := lookPath("gopls", dirs); err == nil {
		found.gopls = gopls
	}
	return found, nil
}

// toolPath lists the folders that may have the kernel's programs.
func toolPath(env environment, goCommand, sourceDir string) string {
	dirs := append([]string{env.get(rundir.EnvTools), env.get("PATH")}, installDirs(goCommand, sourceDir)...)
	return strings.Trim(strings.Join(dirs, string(os.PathListSeparator)), string(os.PathListSeparator))
}

func installDirs(goCommand, sourceDir string) []string {
	var dirs []string
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self))
	}
	dirs = append(dirs, filepath.Join(sourceDir, ".cache", "bin"))
	out, err := exec.Command(goCommand, "env", "GOBIN", "GOPATH").Output()
	if err != nil {
		return dirs
	}
	gobin, gopath, _ := strings.Cut(strings.TrimRight(string(out), "\n"), "\n")
	if gobin != "" {
		dirs = append(dirs, gobin)
	}
	for _, dir := range filepath.SplitList(gopath) {
		dirs = append(dirs, filepath.Join(dir, "bin"))
	}
	return dirs
}

// lookPath is exec.LookPath for any PATH, not just this process's own.
func lookPath(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", exec.ErrNotFound
}
