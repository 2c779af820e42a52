package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
	"strings"
)

// attempt makes one request and appends the received bytes to the part. If it returns nil, the part
// is complete. It reports whether the part has bytes from before the request.
func (d *download) attempt(ctx context.Context, url string) (resumed bool, err error) {
	offset, err := d.offset()
	if err != nil {
		return false, diskError{err}
	}
	if d.Size > 0 && offset == d.Size {
		return true, nil // Already complete: only the check was missing.
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := d.request(ctx, url, offset)
	if err != nil {
		return offset > 0, err
	}
	defer resp.Body.Close()

	start, total, err := d.accept(resp, offset)
	if err != nil {
		return offset > 0, err
	}
	d.bar.total(total)
	d.bar.at(start)
	body := newStallReader(resp.Body, d.StallTimeout, cancel)
	defer body.stop()
	return start > 0, d.store(ctx, body, start, total)
}

// offset returns the number of bytes in the part to resume from, and drops a part that is too long.
func (d *download) offset() (int64, error) {
	info, err := os.Stat(d.part)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if d.Size > 0 && info.Size() > d.Size {
		return 0, os.Remove(d.part)
	}
	return info.Size(), nil
}

// request requests the bytes from offset on.
func (d *download) request(ctx context.Context, url string, offset int64) (*http.Response, error) {
	connected := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "gonbatch")
	d.setRange(req.Header, offset)
	resp, err := d.Client.Do(req)
	switch {
	case err == nil:
		return resp, nil
	case connected:
		return nil, &retryError{reason(err)}
	default:
		return nil, fmt.Errorf("cannot connect: %w", reason(err))
	}
}

// setRange asks for the bytes from offset on. Without a checksum it does so only if the server can
// detect that the file has changed; otherwise the whole file is downloaded again.
func (d *download) setRange(h http.Header, offset int64) {
	if offset == 0 || d.SHA256 == "" && d.validator == "" {
		return
	}
	h.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	if d.SHA256 == "" {
		h.Set("If-Range", d.validator)
	}
}

// validator returns a value for If-Range: a strong ETag, or else a date.
func validator(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

// reason strips net/http's "Get URL:", because our own message names the URL.
func reason(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || !strings.HasPrefix(err.Error(), "Get ") {
			return err
		}
		err = u.Unwrap()
	}
}

// accept reads the response's header. It returns where the body starts in the file, and the length
// of the file (-1 if unknown).
func (d *download) accept(resp *http.Response, offset int64) (start, total int64, err error) {
	switch {
	case resp.StatusCode == http.StatusOK: // This includes a server that ignores ranges: the body is the whole file.
		total = resp.ContentLength
		d.validator = validator(resp.Header)
	case resp.StatusCode == http.StatusPartialContent && offset > 0:
		start, total, err = contentRange(resp.Header.Get("Content-Range"))
		if err == nil && start != offset {
			err = fmt.Errorf("asked for the bytes from %d on, the server sent those from %d on", offset, start)
		}
		if err != nil {
			return 0, 0, d.restart(err)
		}
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && offset > 0:
		return 0, 0, d.restart(statusError(resp))
	default:
		return 0, 0, statusError(resp)
	}
	if d.Size > 0 && total >= 0 && total != d.Size {
		return 0, 0, fmt.Errorf("the server has a file of %d bytes, not %d: another file or a login page", total, d.Size)
	}
	if total < 0 && d.Size > 0 {
		total = d.Size
	}
	return start, total, nil
}

// restart drops the part, so that the next attempt asks for the whole file.
func (d *download) restart(why error) error {
	if err := os.Remove(d.part); err != nil {
		return diskError{err}
	}
	return &retryError{why}
}

// contentRange parses "bytes 3-9/10", where the total may be "*".
func contentRange(h string) (start, total int64, err error) {
	rest, ok := strings.CutPrefix(h, "bytes ")
	span, all, ok2 := strings.Cut(rest, "/")
	first, _, ok3 := strings.Cut(span, "-")
	start, err = strconv.ParseInt(first, 10, 64)
	if !ok || !ok2 || !ok3 || err != nil {
		return 0, 0, fmt.Errorf("the server sent a Content-Range that makes no sense: %q", h)
	}
	if all == "*" {
		return start, -1, nil
	}
	if total, err = strconv.ParseInt(all, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("the server sent a Content-Range that makes no sense: %q", h)
	}
	return start, total, nil
}

// store writes body into the part from start on and syncs it.
func (d *download) store(ctx context.Context, body io.Reader, start, total int64) (err error) {
	f, err := os.OpenFile(d.part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return diskError{err}
	}
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = diskError{closed}
		}
	}()
	if err := f.Truncate(start); err != nil {
		return diskError{err}
	}
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return diskError{err}
	}
	n, err := io.Copy(fileWriter{f}, io.TeeReader(body, d.bar))
	got := start + n
	if _, isDisk := errors.AsType[diskError](err); isDisk {
		return err
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return &retryError{fmt.Errorf("after %s: %w", size(got), err)}
	case err != nil || total >= 0 && got < total:
		return &retryError{fmt.Errorf("%w: it ended after %d of %s bytes", ErrTruncated, got, count(total))}
	case total >= 0 && got > total:
		return d.restart(fmt.Errorf("the server sent more than the %d bytes that it announced", total))
	}
	if err := f.Sync(); err != nil {
		return diskError{err}
	}
	return nil
}
