package distributed

// SetBucketBytes sets how large the buckets of gradients may be.
func SetBucketBytes(n int) { bucketBytes = func() int { return n } }

// Buckets divides nodes as average does.
var Buckets = buckets

// RandomState returns a rank's own random state.
var RandomState = randomState

// OverlapOf decides whether gradients travel while others are computed, by the ranks' choices and
// machines.
func OverlapOf(choices, machines []string) (bool, error) {
	all := make([]overlapWish, len(choices))
	for i := range all {
		all[i] = overlapWish{choices[i], []byte(machines[i])}
	}
	return overlaps(all)
}
