package forecast

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	gresWords = regexp.MustCompile(`[a-z0-9]+`)
	gresSlice = regexp.MustCompile(`^\d+g$`) // Of a GPU that is divided: 3g.40gb.
)

// OfType finds the GPU that a site gives this name, as a type of its generic resources: h100,
// nvidia_h100_80gb_hbm3, a100-sxm4-40gb.
func OfType(kind string) (GPU, error) {
	words := gresWords.FindAllString(strings.ToLower(kind), -1)
	if slices.ContainsFunc(words, gresSlice.MatchString) {
		return GPU{}, fmt.Errorf("the GPUs %q are parts of GPUs, whose figures are not known", kind)
	}
	for _, word := range words {
		if others[word] == "" && !slices.Contains(Names(), word) {
			continue
		}
		for _, size := range []string{"40", "80"} {
			if slices.Contains(words, size) || slices.Contains(words, size+"gb") {
				if g, err := Find(word + "-" + size); err == nil {
					return g, nil
				}
			}
		}
		return Find(word)
	}
	return GPU{}, fmt.Errorf("the GPUs %q are none of %s", kind, strings.Join(Names(), ", "))
}
