package plugin

import "gonbatch/internal/sharedlib"

// entry is the function that makes a library a PJRT plugin.
var entry = sharedlib.Has("GetPjrtApi", "a PJRT plugin")
