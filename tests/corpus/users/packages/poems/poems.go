// Package poems has one.
package poems

import _ "embed" // for One

// One is the poem.
//
//go:embed one.txt
var One string
