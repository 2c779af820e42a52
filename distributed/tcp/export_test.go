package tcp

import "unsafe"

// Call is a collective of a compiled program, with the numbers of a transport.
type Call struct {
	Kind, Type, Count, Reduction, Root int
	Places                             []int64
	In, Out                            []byte
}

// Run runs the collective on a ring of this process, which may have those of other ranks.
func Run(c *Comm, l Call) error {
	return (&call{kind: l.Kind, in: unsafe.Pointer(unsafe.SliceData(l.In)), out: unsafe.Pointer(unsafe.SliceData(l.Out)), bytes: l.Count * sizes[l.Type], dtype: l.Type,
		reduction: l.Reduction, root: l.Root, places: l.Places}).run(c)
}
