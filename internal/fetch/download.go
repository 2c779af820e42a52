package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// download is one call of File that holds the lock.
type download struct {
	Source
	Options
	path, part string
	validator  string // ETag or date of the file that the part comes from; needed only if there is no checksum.
	bar        *meter
}

// run tries the addresses in turn, each with a few attempts.
func (d *download) run(ctx context.Context) error {
	if len(d.URLs) == 0 {
		return fmt.Errorf("fetch %s: no address to download it from", d.Name)
	}
	d.bar = newMeter(d.Progress, d.Name, d.Size)
	defer d.bar.stop()

	failed := &Error{Name: d.Name, Path: d.path}
	for _, url := range d.URLs {
		err := d.from(ctx, url)
		if err == nil {
			d.bar.done()
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("fetch %s: %w%s", d.Name, context.Cause(ctx), d.kept())
		}
		failed.Tries = append(failed.Tries, Try{Way: url, Err: err})
		if _, ok := errors.AsType[diskError](err); ok {
			failed.Fix = "make room for and allow writing of " + d.path
			return failed
		}
	}
	failed.Fix = d.fix()
	return failed
}

// from downloads and checks the file from one address.
func (d *download) from(ctx context.Context, url string) error {
	if d.SHA256 == "" {
		_ = os.Remove(d.part) // Without a checksum, a part from elsewhere may not belong to the file at this address.
	}
	pause := d.Backoff
	for attempt := 1; ; attempt++ {
		resumed, err := d.attempt(ctx, url)
		if err == nil {
			err = d.finish(resumed)
		}
		switch {
		case err == nil, ctx.Err() != nil, !retryable(err):
			return err
		case attempt >= d.Attempts:
			return fmt.Errorf("gave up after %d attempts: %w%s", attempt, err, d.kept())
		}
		if wait := retryAfter(err); wait > pause {
			pause = wait
		}
		d.bar.note("%v; trying again in %v", err, pause)
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
		pause *= 2
	}
}

// finish checks the complete part and moves it to its place.
func (d *download) finish(resumed bool) error {
	err := Verify(d.part, d.Size, d.SHA256)
	switch {
	case err == nil:
		if err := commit(d.part, d.path); err != nil {
			return diskError{err}
		}
		return nil
	case !errors.Is(err, ErrChecksum):
		return diskError{err}
	case resumed:
		// The old part may have been of another file: one clean download will show.
		if err := os.Remove(d.part); err != nil {
			return diskError{err}
		}
		return &retryError{err}
	}
	bad := d.path + ".bad"
	if err := os.Rename(d.part, bad); err != nil {
		return diskError{err}
	}
	return fmt.Errorf("%w; set aside as %s", err, bad)
}

// kept says where a part waits for the next call.
func (d *download) kept() string {
	info, err := os.Stat(d.part)
	if err != nil || info.Size() == 0 || d.SHA256 == "" {
		return ""
	}
	return fmt.Sprintf(" (%s kept in %s; the next call resumes there)", size(info.Size()), d.part)
}

func (d *download) fix() string {
	fix := fmt.Sprintf("download it elsewhere from %s and put it at %s", strings.Join(d.URLs, " or "), d.path)
	if d.SHA256 != "" {
		fix += " (SHA-256 " + d.SHA256 + ")"
	}
	return fix + ", or set HTTPS_PROXY if this site has a proxy"
}

// sleep waits, and returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
