// Package keep lets package-level variables of a notebook survive from one cell into the next: each cell is a process of its own. The
// magic "%keep x, y" writes the calls below into the programs of its cell and of all later ones; nobody else needs them. It keeps
// values, by encoding/gob: two pointers to one thing become two things.
//
//	func kept() keep.Vars { return keep.Vars{"x": &x, "y": &y} }
//	func init()           { kept().Load() }       // after the variables' own initialisers
//	func main()           { defer kept().Save()   // also if the cell panics
package keep
