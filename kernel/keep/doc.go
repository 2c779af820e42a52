// Package keep carries the values of package-level variables of a notebook from one cell to the
// next, because each cell is a separate process. The magic "%keep x, y" writes the calls below into
// the programs of its cell and of all later cells; nothing else needs them. Values are encoded by
// encoding/gob, so two pointers to the same value become pointers to two values, and a slice or map
// without elements becomes nil.
//
//	func kept() keep.Vars { return keep.Vars{"x": &x, "y": &y} }
//	func init()           { kept().Load() }       // after the variables' own initializers
//	func main()           { defer kept().Save()   // also if the cell panics
package keep
