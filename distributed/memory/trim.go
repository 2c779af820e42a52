package memory

// #include "trim.h"
import "C"

// Trim gives the kernel the memory of small blocks that are free. malloc keeps it for the next
// ones, so call it only after work that doesn't come back, such as compiling.
func Trim() { C.gb_trim() }
