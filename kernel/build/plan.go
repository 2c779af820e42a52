package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// plan is how to compile and link a program. In its strings, workMark stands for the tools' working
// folder, and dirMark for the program's folder.
type plan struct {
	// Compile and Link are the tools with their arguments.
	Compile, Link []string
	// CompileConfig and LinkConfig tell the tools where the packages are.
	CompileConfig, LinkConfig string
	// GOROOT is the value of that variable for the tools.
	GOROOT string
	// Packages are all packages that are linked into the program, Local is their localState.
	Packages []string
	Local    string
}

const (
	workMark = "\x00work\x00"
	dirMark  = "\x00dir\x00"
)

// mostPlans is how many plans are kept: those made or used most recently.
const mostPlans = 100

// internalLinker is the flag with which Go's linker doesn't run C's.
const internalLinker = "-linkmode=internal"

// lastFile has the hash of the sources of the last program, if it was built by a plan.
const lastFile = "last"

var packageLine = regexp.MustCompile(`(?m)^packagefile ([^=\n]+)=(.*)$`)

func (b *builder) planFile(key string) string { return filepath.Join(b.Store, key+".json") }

// keepPlan makes a plan from the record of the go command. If that fails, there is no error: the
// next build has no plan.
func (b *builder) keepPlan(key, record string) {
	p, err := readRecord(record, b.Dir)
	if err != nil || !b.covers(p) {
		return
	}
	if p.Local, err = b.localState(p.Packages); err != nil {
		return
	}
	if text, err := json.Marshal(p); err == nil {
		_ = b.store(key, text)
	}
}

// store writes a plan atomically, because other sessions may read it, and removes the oldest plans.
func (b *builder) store(key string, text []byte) error {
	if err := os.MkdirAll(b.Store, 0o755); err != nil {
		return err
	}
	if err := rundir.WriteFileAtomic(b.planFile(key), text, 0o600); err != nil {
		return err
	}
	return prune(b.Store)
}

// prune removes the least recently used plans.
func prune(store string) error {
	names, err := filepath.Glob(filepath.Join(store, "*.json"))
	if err != nil || len(names) <= mostPlans {
		return err
	}
	used := map[string]time.Time{}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			used[name] = info.ModTime()
		}
	}
	slices.SortFunc(names, func(x, y string) int { return used[y].Compare(used[x]) })
	for _, name := range names[mostPlans:] {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// readRecord reads the tools' calls that the script `record` recorded. The tools compiled the
// program in dir.
func readRecord(record, dir string) (*plan, error) {
	texts := map[string]string{}
	for _, name := range []string{"compile", "compile.cfg", "link", "link.cfg", "goroot"} {
		text, err := os.ReadFile(filepath.Join(record, name))
		if err != nil {
			return nil, err
		}
		texts[name] = string(text)
	}
	args := strings.Split(strings.TrimSuffix(texts["compile"], "\n"), "\n")
	at := slices.Index(args, "-o")
	if at < 0 || at+1 == len(args) {
		return nil, errUncovered
	}
	work := filepath.Dir(args[at+1])
	mark := func(text string) string {
		return strings.ReplaceAll(strings.ReplaceAll(text, work, workMark), dir+"/", dirMark+"/")
	}
	p := &plan{
		Compile: strings.Split(mark(strings.Join(args, "\n")), "\n"), CompileConfig: mark(texts["compile.cfg"]),
		Link: strings.Split(mark(strings.TrimSuffix(texts["link"], "\n")), "\n"), LinkConfig: mark(texts["link.cfg"]),
		GOROOT: strings.TrimSpace(texts["goroot"]),
	}
	for _, match := range packageLine.FindAllStringSubmatch(p.LinkConfig, -1) {
		p.Packages = append(p.Packages, match[1])
	}
	// A package that was just compiled is still in a folder that the go command will remove: the
	// next build will make the plan.
	if strings.Contains(p.CompileConfig+p.LinkConfig+strings.Join(p.Link, "\n"), filepath.Dir(work)+"/") {
		return nil, errUncovered
	}
	return p, nil
}

// covers reports whether the plan compiles all of the program's files.
func (b *builder) covers(p *plan) bool {
	files, err := b.goFiles()
	if err != nil {
		return false
	}
	var compiled []string
	for _, arg := range p.Compile {
		if filepath.Ext(arg) == ".go" && filepath.Dir(arg) == dirMark {
			compiled = append(compiled, filepath.Base(arg))
		}
	}
	slices.Sort(compiled)
	return slices.Equal(files, compiled)
}

// byPlan builds by the plan for a key. ok reports whether it finished, with the program or with the
// compiler's messages.
func (b *builder) byPlan(ctx context.Context, key string) (output []byte, ok bool) {
	text, err := os.ReadFile(b.planFile(key))
	if err != nil {
		return nil, false
	}
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, false
	}
	if local, err := b.localState(p.Packages); err != nil || local != p.Local {
		_ = os.Remove(b.planFile(key))
		return nil, false
	}
	state, err := b.state(key)
	if err != nil {
		return nil, false
	}
	last := filepath.Join(b.Plans, lastFile)
	known := slices.Contains(p.Link, internalLinker) // C's linker reads libraries that may have changed.
	if text, err := os.ReadFile(last); known && err == nil && string(text) == state && exists(b.binary()) {
		return nil, true
	}
	_ = os.Remove(last)
	output, err = b.follow(ctx, &p)
	if err != nil {
		return output, len(output) > 0
	}
	_ = os.WriteFile(last, []byte(state), 0o600)
	now := time.Now()
	_ = os.Chtimes(b.planFile(key), now, now) // it was used
	return nil, true
}

// state identifies the program: its plan, and the text of its files.
func (b *builder) state(key string) (string, error) {
	files, err := b.goFiles()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, key)
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(b.Dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s\n", name, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// follow compiles and links. If it fails because of the program, the output has the compiler's
// messages.
func (b *builder) follow(ctx context.Context, p *plan) (output []byte, err error) {
	work := filepath.Join(b.Plans, "work")
	err = errors.Join(
		os.MkdirAll(filepath.Join(work, "exe"), 0o755),
		os.WriteFile(filepath.Join(work, "importcfg"), []byte(b.in(work, p.CompileConfig)), 0o600),
		os.WriteFile(filepath.Join(work, "importcfg.link"), []byte(b.in(work, p.LinkConfig)), 0o600))
	if err != nil {
		return nil, err
	}
	if output, err = b.tool(ctx, p, work, p.Compile); err != nil {
		return messages(bytes.ReplaceAll(output, []byte(b.Dir+"/"), []byte("./"))), err
	}
	b.noteTime(LinkTime)
	if _, err = b.tool(ctx, p, work, p.Link); err != nil {
		return nil, err
	}
	return nil, os.Rename(filepath.Join(work, "exe", "a.out"), b.binary())
}

// in replaces the marks in a plan's text with folders.
func (b *builder) in(work, text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, workMark, work), dirMark, b.Dir)
}

func (b *builder) tool(ctx context.Context, p *plan, work string, args []string) ([]byte, error) {
	args = slices.Clone(args)
	for i := range args {
		args[i] = b.in(work, args[i])
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = b.Dir
	cmd.Env = append(slices.Clone(b.Environ), "PWD="+b.Dir, "GOROOT="+p.GOROOT)
	return cmd.CombinedOutput()
}

// message matches a line of the compiler about a place in a file.
var message = regexp.MustCompile(`^(\./\S+\.go:\d+:\d+: |\t|too many errors)`)

// messages returns the compiler's output as the go command would print it, or nothing if it isn't
// about the program.
func messages(output []byte) []byte {
	text := bytes.TrimRight(output, "\n")
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if !message.Match(line) || bytes.Contains(line, []byte("could not import")) {
			return nil
		}
	}
	return append([]byte("# cell\n"), append(text, '\n')...)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
