package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/tests/cluster"
)

// TestTags runs main cells with two ranks and with tags that set on how many ranks they run and
// whether they may fail.
func TestTags(t *testing.T) {
	t.Parallel()
	t.Run("on this machine", func(t *testing.T) {
		t.Parallel()
		tagged(t, newUser(t), "--local", "--tasks", "2")
	})
	t.Run("on the cluster", func(t *testing.T) {
		t.Parallel()
		c := cluster.Start(t)
		tagged(t, newUser(t, c.Env()...), "--nodes", "2", "--mpi", "pmix", "--follow")
	})
}

// tagged checks that a cell tagged rank-0 runs once, with its own arguments and the job's; that a
// cell tagged raises-exception fails on each rank without stopping the job; and that a %test cell
// runs once.
func tagged(t *testing.T, u user, flags ...string) {
	t.Helper()
	name := u.writeTagged(t, "tags.ipynb",
		taggedCell{"%% own 1\nfmt.Println(\"once:\", os.Args[1:], os.Getenv(\"SLURM_NTASKS\") < \"2\")", "rank-0"},
		taggedCell{"%%\nfmt.Println(\"fails:\", os.Args[1:])\nos.Exit(5)", "raises-exception"},
		taggedCell{"%test\nfunc TestIt(t *testing.T) { fmt.Println(\"test runs\") }", ""},
		taggedCell{"%%\nfmt.Println(\"all\")", ""},
	)
	u.mustSubmit(t, append(flags, name, "--", "job", "2")...)
	run := u.run(t)
	for _, tt := range []struct {
		text string
		want [2]int // how often it is in the log of each rank
	}{
		{"once: [own 1 job 2] true\n", [2]int{1, 0}},
		{"fails: [job 2]\n", [2]int{1, 1}},
		{"cell 2 (id cell-b) may fail: it ended with exit code 5\n", [2]int{1, 1}},
		{"test runs\n", [2]int{1, 0}},
		{"all\n", [2]int{1, 1}},
	} {
		for rank, want := range tt.want {
			if log := read(t, run.RankLog(rank)); strings.Count(log, tt.text) != want {
				t.Errorf("rank %d's log must contain this %d times: %q:\n%s", rank, want, tt.text, log)
			}
		}
	}
}

// taggedCell is a code cell with a tag.
type taggedCell struct{ source, tag string }

// writeTagged writes a notebook of code cells with tags.
func (u user) writeTagged(t *testing.T, name string, cells ...taggedCell) string {
	t.Helper()
	var texts []string
	for i, c := range cells {
		texts = append(texts, fmt.Sprintf(`{"cell_type": "code", "id": "cell-%c", "metadata": {"tags": [%s]}, "outputs": [], "execution_count": null, "source": %q}`,
			'a'+i, quoted(c.tag), c.source))
	}
	path := filepath.Join(u.folder, name)
	text := fmt.Sprintf(`{"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "gonb", "language": "go", "display_name": "Go"}}, "cells": [%s]}`, strings.Join(texts, ", "))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func quoted(tag string) string {
	if tag == "" {
		return ""
	}
	return fmt.Sprintf("%q", tag)
}
