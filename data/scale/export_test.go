package scale

import "image"

// Plain is Bilinear without the processor's vectors.
func Plain(to, from *image.RGBA) {
	plain(to, from, means(to.Rect.Dx(), from.Rect.Dx()), means(to.Rect.Dy(), from.Rect.Dy()))
}
