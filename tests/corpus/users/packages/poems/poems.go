// Package poems has a poem.
package poems

import _ "embed" // for One

// One is the poem.
//
//go:embed one.txt
var One string
