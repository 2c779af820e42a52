// Package aottest gives tests XLA's compiler for GPUs.
//
//	compiler, err := aot.Open(aottest.Compiler(t))
package aottest
