package cifar

import (
	"fmt"
	"slices"
)

// Side is the side of an image, in pixels.
const Side = 32

const (
	channels = 3
	plane    = Side * Side // The bytes of a channel.
)

// record returns the number of bytes of an image with its labels.
func (s Set) record() int { return s.Labels + channels*plane }

// parse appends the pixels of a file, channels last, and the classes. The file has all red bytes of
// an image before the green ones and the blue ones.
func (s Set) parse(content, pixels, classes []byte) ([]byte, []byte, error) {
	if len(content) == 0 || len(content)%s.record() != 0 {
		return nil, nil, fmt.Errorf("%d bytes are not a whole number of images of %d bytes: the file is incomplete, or not of %s's binary version; remove it", len(content), s.record(), s.Title)
	}
	n := len(content) / s.record()
	pixels, classes = slices.Grow(pixels, n*channels*plane), slices.Grow(classes, n)
	for image := range slices.Chunk(content, s.record()) {
		class := image[s.Labels-1]
		if int(class) >= s.Classes {
			return nil, nil, fmt.Errorf("image %d has class %d; the largest is %d: the file is damaged, or not of %s's binary version; remove it", len(classes), class, s.Classes-1, s.Title)
		}
		classes = append(classes, class)
		red, green, blue := image[s.Labels:][:plane], image[s.Labels+plane:][:plane], image[s.Labels+2*plane:][:plane]
		for i := range plane {
			pixels = append(pixels, red[i], green[i], blue[i])
		}
	}
	return pixels, classes, nil
}
