// Package keep carries the values of package-level variables of a notebook from one cell to the
// next, because each cell is a separate process. The magic "%keep x, y" writes the calls below into
// the programs of its cell and of all later cells; nothing else needs them. Values are encoded by
// encoding/gob, so two pointers to the same value become pointers to two values, and a slice or map
// without elements becomes nil. Slices of numbers are written as they lie in memory.
//
//	func kept() keep.Vars { return keep.Vars{"x": &x, "y": &y} }
//	func init()           { kept().Load(keep.Declared{"x": "(hash)"}) } // before other init functions
//	func main()           { defer kept().Begin()()  // also if the cell panics
//
// A value that can't be loaded before the program's own init functions, since these register its
// type, is loaded by Begin. One that can't be loaded at all is not written over as long as the
// variable keeps its initial value.
package keep
