package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// download is one call of File that holds the lock.
type download struct {
	Source
	Options
	client *http.Client
	path   string
	bar    *meter
}

// retryError marks a failure that may not happen again at the same address: an interruption, a
// stall, a busy server. An unreachable network is not one: the next address is tried at once.
type retryError struct{ error }

func (e *retryError) Unwrap() error { return e.error }

// run tries the addresses in turn, each with a few attempts.
func (d *download) run(ctx context.Context) error {
	if len(d.URLs) == 0 {
		return fmt.Errorf("fetch %s: no address to download it from", d.Name)
	}
	removeStale(d.path)
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
			return fmt.Errorf("fetch %s: %w", d.Name, context.Cause(ctx))
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

// from downloads the file from one address.
func (d *download) from(ctx context.Context, url string) error {
	pause := d.Backoff
	for attempt := 1; ; attempt++ {
		err := d.attempt(ctx, url)
		if _, retryable := errors.AsType[*retryError](err); !retryable || ctx.Err() != nil {
			return err
		}
		if attempt >= d.Attempts {
			return fmt.Errorf("gave up after %d attempts: %w", attempt, err)
		}
		d.bar.note("%v; trying again in %v", err, pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// attempt makes one request for the whole file, and puts it in its place if it is the right one.
func (d *download) attempt(ctx context.Context, url string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := d.request(ctx, url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	total := resp.ContentLength // -1 if unknown.
	if d.Size > 0 && total >= 0 && total != d.Size {
		return fmt.Errorf("the server has a file of %d bytes, not %d: another file or a login page", total, d.Size)
	}
	d.bar.begin(total)
	body := newStallReader(resp.Body, d.StallTimeout, cancel)
	defer body.timer.Stop()
	content := io.TeeReader(body, d.bar)
	if d.Size > 0 {
		content = io.LimitReader(content, d.Size+1) // One too many is enough to refuse the file.
	}
	err = WriteFile(d.path, content, d.Size, d.SHA256)
	switch {
	case err != nil && body.failed == nil && total < 0 && body.read < d.Size: // It only looks like a whole one.
		return &retryError{fmt.Errorf("%w: it ended after %d of %d bytes", ErrTruncated, body.read, d.Size)}
	case err == nil || body.failed == nil && errors.Is(err, ErrChecksum):
		return err
	case errors.Is(body.failed, io.ErrUnexpectedEOF):
		return &retryError{fmt.Errorf("%w: it ended after %d%s bytes", ErrTruncated, body.read, outOf(total))}
	case body.failed != nil:
		return &retryError{fmt.Errorf("after %s: %w", size(body.read), cmp.Or(context.Cause(ctx), body.failed))}
	}
	return diskError{err}
}

// request requests the file.
func (d *download) request(ctx context.Context, url string) (*http.Response, error) {
	connected := false
	trace := &httptrace.ClientTrace{
		GetConn: func(string) { connected = false }, // A redirect may lead to a host that can't be reached.
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "gonbatch")
	resp, err := d.client.Do(req)
	switch {
	case err != nil && connected:
		return nil, &retryError{reason(err)}
	case err != nil:
		return nil, fmt.Errorf("cannot connect: %w", reason(err))
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	_ = resp.Body.Close() // It was only read.
	status := &StatusError{Code: resp.StatusCode, Status: resp.Status}
	if status.temporary() {
		return nil, &retryError{status}
	}
	return nil, status
}

// reason strips net/http's "Get URL:", because our own message names the URL.
func reason(err error) error {
	if get, ok := errors.AsType[*url.Error](err); ok {
		return get.Err
	}
	return err
}

// outOf says how many bytes there should be; "" if that is not known.
func outOf(total int64) string {
	if total < 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", total)
}

func (d *download) fix() string {
	fix := fmt.Sprintf("download it elsewhere from %s and put it at %s", strings.Join(d.URLs, " or "), d.path)
	if d.SHA256 != "" {
		fix += " (SHA-256 " + d.SHA256 + ")"
	}
	return fix + ", or set HTTPS_PROXY if this site has a proxy"
}

// stallReader cancels the request when no bytes arrive for a while.
type stallReader struct {
	body   io.Reader
	after  time.Duration
	timer  *time.Timer
	read   int64
	failed error // The first error, unless it is the end.
}

func newStallReader(body io.Reader, after time.Duration, cancel context.CancelCauseFunc) *stallReader {
	stalled := fmt.Errorf("no data for %v", after)
	return &stallReader{body: body, after: after, timer: time.AfterFunc(after, func() { cancel(stalled) })}
}

// Read reads from the body.
func (s *stallReader) Read(b []byte) (int, error) {
	n, err := s.body.Read(b)
	s.read += int64(n)
	if n > 0 {
		s.timer.Reset(s.after)
	}
	if err != nil && !errors.Is(err, io.EOF) && s.failed == nil {
		s.failed = err
	}
	return n, err
}

// newClient returns a client, with the environment's proxy, that detects a closed network in a few
// seconds, not minutes. It has no overall timeout: a large file on a slow line is fine as long as
// bytes arrive.
func newClient(connect, header time.Duration) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second}).DialContext
	t.TLSHandshakeTimeout = connect
	t.ResponseHeaderTimeout = header
	t.DisableCompression = true // The bytes on the wire are the file: sizes and ranges must refer to them.
	return &http.Client{Transport: t}
}
