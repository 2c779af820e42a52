//go:build !cgo || !amd64

package scale

import "image"

// vectorized does nothing on other processors, and in programs without cgo.
func vectorized(_, _ *image.RGBA, _, _ []mean) bool { return false }
