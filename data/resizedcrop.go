package data

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// RandomResizedCrop cuts a random part out of an image, and scales it to the size of the image. The
// part has from smallest, which is more than 0, to all of the area, and the image's proportions
// changed by a factor from 3/4 to 4/3 (Szegedy et al., Going Deeper with Convolutions, 2014). 0.08
// is usual for photos.
//
// It is torchvision's RandomResizedCrop, without a change of size: the size of the dataset's images
// is that of data.FolderConfig.
func RandomResizedCrop(smallest float64) Transform {
	return func(im Image, random *rand.Rand) error {
		if !(smallest > 0 && smallest <= 1) {
			return fmt.Errorf("RandomResizedCrop: the smallest part must be more than 0 and at most 1, got %g", smallest)
		}
		if random == nil {
			return nil
		}
		area := smallest + (1-smallest)*random.Float64()
		stretch := math.Exp((2*random.Float64() - 1) * math.Log(4.0/3) / 2)
		height := min(1, math.Sqrt(area)*stretch) * float64(im.Height)
		width := min(1, math.Sqrt(area)/stretch) * float64(im.Width)
		top, left := random.Float64()*(float64(im.Height)-height), random.Float64()*(float64(im.Width)-width)
		enlarge(im, places(im.Height, top, height), places(im.Width, left, width))
		return nil
	}
}

// place says which two rows or columns a new one lies between, and how near to the second.
type place struct {
	first, second int
	share         float32
}

// places maps n rows, or columns, to a part of them.
func places(n int, begin, size float64) []place {
	all := make([]place, n)
	for i := range all {
		at := min(max(begin+(float64(i)+0.5)*size/float64(n)-0.5, 0), float64(n-1))
		first := int(at)
		all[i] = place{first, min(first+1, n-1), float32(at - float64(first))}
	}
	return all
}

// enlarge fills an image with a part of it, with bilinear interpolation.
func enlarge(im Image, rows, columns []place) {
	old, stride := slices.Clone(im.Pixels), im.Width*im.Channels
	for y, row := range rows {
		above, below := old[row.first*stride:][:stride], old[row.second*stride:][:stride]
		for x, column := range columns {
			for ch := range im.Channels {
				left, right := column.first*im.Channels+ch, column.second*im.Channels+ch
				top := above[left] + column.share*(above[right]-above[left])
				bottom := below[left] + column.share*(below[right]-below[left])
				im.Pixels[y*stride+x*im.Channels+ch] = top + row.share*(bottom-top)
			}
		}
	}
}
