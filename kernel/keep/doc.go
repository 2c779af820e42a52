// Package keep carries the values of a notebook's package-level variables from one cell to the
// next, because each cell is a separate process. The magic "%keep x, y" writes the calls below into
// the programs of its cell and of all later cells; you don't need to call them yourself. Values are
// encoded by encoding/gob, so two pointers to one value become pointers to two values, and a slice
// without elements becomes nil, and a nil map in a list becomes an empty one. Slices of numbers are
// written as they lie in memory, and come back exactly.
//
//	func kept() keep.Vars { return keep.Vars{"x": &x, "y": &y} }
//	func init()           { kept().Load(keep.Declared{"x": "(hash)"}) } // before other init functions
//	func main()           { defer kept().Begin()()  // even if the cell panics
//
// Init functions may register a value's type, so Begin loads the values that can't be loaded before
// the program's own init functions have run. A value that can't be loaded at all is not overwritten
// as long as the variable keeps its initial value.
package keep
