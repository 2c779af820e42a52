// Command notebooks runs the project's notebooks in full size, and writes their results to
// docs/notebooks.md: what they reach, the time, and the pictures that they draw.
//
//	make notebooks
//	go run ./bench/notebooks -only mnist,gan   # the results of the others stay
//
// Each notebook runs by `submit --local`, in a run directory of its own below .cache/notebooks. One
// whose images can't be downloaded is left out, with the reason. The results are also in
// bench/results/notebooks.json.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

type options struct {
	only, page, pictures, results, runs string
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run only these, separated by commas: "+strings.Join(names(), ", "))
	flag.StringVar(&o.page, "page", filepath.Join("docs", "notebooks.md"), "page of the results")
	flag.StringVar(&o.pictures, "pictures", filepath.Join("docs", "images", "notebooks"), "folder of the pictures")
	flag.StringVar(&o.results, "results", filepath.Join("bench", "results", "notebooks.json"), "file of the results")
	flag.StringVar(&o.runs, "runs", filepath.Join(".cache", "notebooks"), "folder of the run directories")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "notebooks:", err)
		os.Exit(1)
	}
}

func names() (all []string) {
	for _, n := range notebooks {
		all = append(all, n.name)
	}
	return all
}

// run runs the chosen notebooks. After each, it writes the results.
func run(ctx context.Context, o options, out io.Writer) error {
	chosen := names()
	if o.only != "" {
		chosen = strings.Split(o.only, ",")
	}
	for _, name := range chosen {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("-only %s: no notebook %q: want some of %s", o.only, name, strings.Join(names(), ", "))
		}
	}
	all, err := load(o.results)
	if err != nil {
		return err
	}
	submit, err := build(ctx)
	if err != nil {
		return err
	}
	var missed []error
	for _, n := range notebooks {
		if !slices.Contains(chosen, n.name) {
			continue
		}
		found, err := n.run(ctx, submit, o, out)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", n.name, found.summary())
		missed = append(missed, n.missed(found))
		all[n.name] = found
		if err := save(o, all); err != nil {
			return err
		}
	}
	return errors.Join(missed...)
}

// build compiles the submit command and returns its absolute path.
func build(ctx context.Context) (string, error) {
	path, err := filepath.Abs(filepath.Join(".cache", "bin", "notebooks-submit"))
	if err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/submit").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/submit: %w\n%s", err, out)
	}
	return path, nil
}

// load reads the results of earlier calls.
func load(path string) (map[string]result, error) {
	all := map[string]result{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// save writes the results and the page.
func save(o options, all map[string]result) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(o.results, append(text, '\n'), 0o644), os.WriteFile(o.page, []byte(page(all)), 0o644))
}
