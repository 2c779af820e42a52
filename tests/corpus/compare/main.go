// Command compare runs the notebooks of any folder with plain GoNB, with gonbatch's kernel, with
// submit check and with submit --local, and shows where they differ:
//
//	go run ./tests/corpus/compare FOLDER
//	go run ./tests/corpus/compare -replace 'train_steps=\d+=>train_steps=2' -only 'mnist|fft' FOLDER
//
// Each line shows how many code cells a notebook has, and how many of them are ok on each side. A
// job gets only the cells that are ok in GoNB. The differences follow; without -all, only the
// first.
//
// The file corpus.yaml in the folder, or the one that -rules names, has replacements, patterns of
// output that differs from run to run, a time limit for a cell, and the exceptions with their
// reasons (see corpus.Rules). An exception that no longer applies is a difference too.
//
// It runs everything in the notebooks, including shell commands, with a separate home folder: read
// them first. It needs what `make setup` installs.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"gonbatch/tests/corpus"
	"gonbatch/tests/jupyter"
)

type options struct {
	rules, only string
	record      string
	replace     []string
	limit       time.Duration
	all, gonb   bool
}

func main() {
	var o options
	flag.StringVar(&o.rules, "rules", "", "file with rules; default "+corpus.RulesFile+" in the folder")
	flag.StringVar(&o.only, "only", "", "regular expression: the notebooks to run")
	flag.StringVar(&o.record, "record", "", "file to write how the cells of all notebooks that run end in GoNB, for TestForeign; those that the folder lacks are removed")
	flag.Func("replace", "`regex=>text`: change the source of all cells; may be repeated", func(rule string) error {
		o.replace = append(o.replace, rule)
		return nil
	})
	flag.DurationVar(&o.limit, "limit", 0, "time that a cell may take; default 2m")
	flag.BoolVar(&o.gonb, "gonb", false, "show how the cells end in GoNB")
	flag.BoolVar(&o.all, "all", false, "show all differences of a notebook, not the first only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

var errDifferent = errors.New("some notebooks differ")

func run(ctx context.Context, o options, args []string, out io.Writer) (err error) {
	if len(args) != 1 {
		return errors.New("usage: go run ./tests/corpus/compare [flags] FOLDER")
	}
	folder, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	rules, names, err := o.read(folder)
	if err != nil {
		return err
	}
	if err := corpus.Download(ctx, rules.Modules); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, err := newMachine(ctx, dir)
	if err != nil {
		return err
	}
	different := false
	fmt.Fprintf(out, "%-44s %5s %5s %6s %5s %5s\n", "NOTEBOOK", "CELLS", "GONB", "KERNEL", "CHECK", "LOCAL")
	for _, name := range names {
		c, err := m.Compare(ctx, folder, name, rules)
		if err != nil {
			return err
		}
		show(out, c, o.all)
		if o.record != "" {
			if err := corpus.WriteStatuses(o.record, map[string]corpus.Statuses{name: c.Statuses}); err != nil {
				return err
			}
		}
		if o.gonb {
			showFailed(out, c.Failed)
		}
		different = different || len(c.Differences)+len(c.Stale) > 0
	}
	if o.record != "" {
		if err := o.forgetOthers(folder); err != nil {
			return err
		}
	}
	if different {
		return errDifferent
	}
	return nil
}

// forgetOthers removes the notebooks that the folder no longer has from the record.
func (o options) forgetOthers(folder string) error {
	names, err := corpus.FindNotebooks(folder)
	if err != nil {
		return err
	}
	return corpus.KeepStatuses(o.record, names)
}

// read returns the rules and the notebooks to run.
func (o options) read(folder string) (rules corpus.Rules, names []string, err error) {
	if rules, err = corpus.ReadRules(cmp.Or(o.rules, filepath.Join(folder, corpus.RulesFile))); err != nil {
		return rules, nil, err
	}
	rules.Limit = cmp.Or(o.limit, rules.Limit)
	for _, rule := range o.replace {
		find, with, ok := strings.Cut(rule, "=>")
		expression, err := regexp.Compile(find)
		if !ok || err != nil {
			return rules, nil, errors.Join(fmt.Errorf("-replace %s: want REGEX=>TEXT", rule), err)
		}
		rules.Replace = append(rules.Replace, corpus.Replacement{Find: corpus.Pattern{Regexp: expression}, With: with})
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return rules, nil, fmt.Errorf("-only %s: %w", o.only, err)
	}
	found, err := corpus.FindNotebooks(folder)
	for _, name := range found {
		if only.MatchString(name) {
			names = append(names, name)
		}
	}
	return rules, names, err
}

// newMachine builds the submit command and installs the kernels.
func newMachine(ctx context.Context, dir string) (*corpus.Machine, error) {
	root, err := jupyter.Root()
	if err != nil {
		return nil, err
	}
	m := &corpus.Machine{
		Python: filepath.Join(root, ".cache", "venv", "bin", "python"), Root: root, Program: filepath.Join(dir, "submit"), Dir: dir,
		Getenv: os.Getenv, Environ: os.Environ(),
	}
	if _, err := os.Stat(m.Python); err != nil {
		return nil, fmt.Errorf("%w: run `make setup`", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", m.Program, "./cmd/submit")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build ./cmd/submit: %w\n%s", err, out)
	}
	return m, m.Install(ctx)
}

// show writes a notebook's line, and its differences.
func show(out io.Writer, c corpus.Comparison, all bool) {
	fmt.Fprintf(out, "%-44s %5d %5d %6d %5d %5d\n", c.Notebook, c.Cells, c.GoNB, c.Kernel, c.Check, c.Local)
	for i, d := range c.Differences {
		if i > 0 && !all {
			fmt.Fprintf(out, "  and %d more: -all shows them\n", len(c.Differences)-1)
			break
		}
		fmt.Fprintf(out, "  %s\n", d)
	}
	for _, e := range c.Stale {
		fmt.Fprintf(out, "  remove this exception, it no longer applies: %s\n", e)
	}
}

// showFailed writes GoNB's messages about the cells that fail in it.
func showFailed(out io.Writer, failed []corpus.Cell) {
	for _, cell := range failed {
		fmt.Fprintf(out, "  cell %d fails in GoNB: %s\n", cell.Number, corpus.Brief(cell.Error+"\n"+cell.Stderr))
	}
}
