package distributed

// SetBucketBytes sets how large the buckets of gradients may be.
func SetBucketBytes(n int) { bucketBytes = func() int { return n } }

// Buckets divides nodes as average does.
var Buckets = buckets

// AverageBytes returns how large a bucket of a type may be for an average.
var AverageBytes = averageBytes

// RandomState returns a rank's own random state.
var RandomState = randomState

// OverlapOf decides whether gradients travel while others are computed, by the ranks' choices and
// machines. busy is whether rank 0 has only one core, and waits on it.
func OverlapOf(choices, machines []string, busy bool) (bool, error) {
	all := make([]overlapWish, len(choices))
	for i := range all {
		all[i] = overlapWish{Choice: choices[i], Machine: []byte(machines[i]), Busy: busy && i == 0}
	}
	return overlaps(all)
}
