// Package gonbatch holds the source of gonbatch's own library, so that a machine which only has the
// submit command can compile notebooks that import it. Package source writes it to disk, and
// package gocode is its text; nothing else needs this package.
package gonbatch

import "embed"

// Library is the source of the packages that a notebook may import, with go.mod and go.sum. To make
// a further package importable, add its folder here; a test in package source fails when one that
// these need is missing.
//
//go:embed go.mod go.sum gonbatch.go checkpoint data distributed
//go:embed internal/bounded internal/cluster internal/compilecache internal/fetch internal/forecast internal/hugepages internal/layerhooks internal/machine internal/nearest internal/plugin internal/plural internal/proc internal/quota internal/rundir internal/sharedlib internal/solo internal/unread internal/userdir internal/yamldoc
//go:embed kernel/display kernel/keep kernel/papermill/gonbatch_papermill.py kernel/papermill/pyproject.toml logger models submit/result trainer
var Library embed.FS
