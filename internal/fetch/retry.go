package fetch

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// retryError marks a failure that may not happen again at the same address: an interruption, a
// stall, a busy server. An unreachable network is not one: the next address is tried at once.
type retryError struct{ error }

func (e *retryError) Unwrap() error { return e.error }

func retryable(err error) bool {
	_, ok := errors.AsType[*retryError](err)
	return ok
}

// busyError is a StatusError with the time after which to retry.
type busyError struct {
	*StatusError
	after time.Duration
}

func (e *busyError) Unwrap() error { return e.StatusError }

// maxRetryAfter keeps a server from making us wait forever.
const maxRetryAfter = 30 * time.Second

func retryAfter(err error) time.Duration {
	if busy, ok := errors.AsType[*busyError](err); ok {
		return busy.after
	}
	return 0
}

// statusError turns an unexpected response into an error of the right kind.
func statusError(resp *http.Response) error {
	status := &StatusError{Code: resp.StatusCode, Status: resp.Status}
	if !status.temporary() {
		return status
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return &retryError{status}
	}
	return &retryError{&busyError{status, min(time.Duration(seconds)*time.Second, maxRetryAfter)}}
}
