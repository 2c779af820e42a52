package distributed

// SetBucketBytes sets how large the buckets of gradients may be.
func SetBucketBytes(n int) { bucketBytes = func() int { return n } }

// Buckets divides nodes as average does.
var Buckets = buckets

// RandomState returns a rank's own random state.
var RandomState = randomState
