package data

import "gonbatch/data/turbojpeg"

// WithTurbo returns a folder that decodes by this library, or by image/jpeg.
func (f *Folder) WithTurbo(library *turbojpeg.Library) *Folder {
	other := *f
	other.decoder.turbo = library
	return &other
}

// Turbo is the library in use.
func (f *Folder) Turbo() *turbojpeg.Library { return f.decoder.turbo }

// Narrowed is a dataset whose examples depend on others.
type Narrowed = narrowed
