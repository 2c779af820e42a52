package data

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"strings"
)

// explained adds to an error of package image what the file is instead, and what to do.
func explained(err error, file io.ReadSeeker) error {
	var disk *fs.PathError
	switch {
	case errors.As(err, &disk):
		return err
	case errors.Is(err, image.ErrFormat):
		return fmt.Errorf("%w: %s", err, contentOf(file))
	case strings.Contains(err.Error(), "EOF"):
		return fmt.Errorf("%w: the file is truncated: copy it again, or remove it", err)
	}
	return fmt.Errorf("%w: copy the file again, or remove it", err)
}

// otherFormats have the beginnings of images that can't be read, at an offset.
var otherFormats = []struct {
	offset int
	begin  string
	name   string
}{
	{8, "WEBP", "a WebP image"}, {0, "BM", "a BMP image"}, {0, "II*\x00", "a TIFF image"}, {0, "MM\x00*", "a TIFF image"},
	{4, "ftypavi", "an AVIF image"}, {4, "ftyphei", "an HEIC image"}, {4, "ftypmif1", "an HEIC image"}, {4, "jP  ", "a JPEG 2000 image"},
}

// contentOf says what a file is, by how it begins, and what to do.
func contentOf(file io.ReadSeeker) string {
	begin := make([]byte, 24)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "it can't be read again"
	}
	n, err := io.ReadFull(file, begin)
	if begin = begin[:n]; n == 0 && errors.Is(err, io.EOF) {
		return "the file is empty: copy it again, or remove it"
	}
	for _, other := range otherFormats {
		if n > other.offset && bytes.HasPrefix(begin[other.offset:], []byte(other.begin)) {
			return fmt.Sprintf("it is %s: convert it to a JPEG, a PNG or a GIF", other.name)
		}
	}
	return fmt.Sprintf("it begins with %q, unlike a JPEG, a PNG or a GIF: convert or remove it", begin)
}
