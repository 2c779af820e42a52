package gocell

import "strings"

// BuildTags returns those flags of the go command that choose build tags.
func BuildTags(flags []string) (tags []string) {
	for i, flag := range flags {
		name, _, joined := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if name == "tags" && joined {
			tags = append(tags, flag)
		} else if name == "tags" && i+1 < len(flags) {
			tags = append(tags, flag, flags[i+1])
		}
	}
	return tags
}
