package plugin

import "gonbatch/internal/sharedlib"

// entry is the function that makes a library a PJRT plugin.
var entry = sharedlib.Has("GetPjrtApi", "a PJRT plugin")

// check refuses a library that can't be loaded here, with a reason that dlopen would not give.
func check(path string) error { return sharedlib.Check(path, entry) }
