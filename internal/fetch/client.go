package fetch

import (
	"net"
	"net/http"
	"time"
)

// newClient returns a client that detects a closed network in a few seconds, not minutes. It has no
// overall timeout: a large file on a slow line is fine as long as bytes arrive.
func newClient(connect, header time.Duration) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second}).DialContext
	t.TLSHandshakeTimeout = connect
	t.ResponseHeaderTimeout = header
	t.DisableCompression = true // The bytes on the wire are the file: sizes and ranges must refer to them.
	return &http.Client{Transport: t}
}
