package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"
)

// lookup returns a key's flag, or an error if the key is not a flag that may be set here.
func lookup(flags *pflag.FlagSet, key string) (*pflag.Flag, error) {
	known := settable(flags)
	name := string(flags.GetNormalizeFunc()(flags, key)) // A flag may go by another name too.
	for _, f := range known {
		if f.Name == name {
			return f, nil
		}
	}
	if flags.Lookup(key) != nil {
		return nil, fmt.Errorf("key %q: only the command line can set it, with --%s", key, key)
	}
	if near := nearest(key, known); len(near) > 0 {
		return nil, fmt.Errorf("unknown key %q: did you mean %s?", key, strings.Join(near, " or "))
	}
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.Name
	}
	return nil, fmt.Errorf("unknown key %q: the keys are %s", key, strings.Join(names, ", "))
}

// maxDistance is how many letters of a typo may be wrong.
const maxDistance = 3

// nearest lists up to three keys that may be meant by a typo, the nearest first.
func nearest(key string, known []*pflag.Flag) []string {
	type candidate struct {
		name     string
		distance int
	}
	var list []candidate
	for _, f := range known {
		d := distance(key, f.Name)
		if d <= min(maxDistance, len(f.Name)/2) {
			list = append(list, candidate{f.Name, d})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, c := range list[:min(3, len(list))] {
		names = append(names, fmt.Sprintf("%q", c.name))
	}
	return names
}

// distance returns the edit distance between a key and a flag's name.
func distance(key, flag string) int {
	return levenshtein.ComputeDistance(strings.ToLower(strings.ReplaceAll(key, "_", "-")), flag)
}
