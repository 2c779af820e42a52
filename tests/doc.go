// Package tests has the tests of the whole system: the example notebooks in a real Jupyter client,
// and what only shows when all parts work together. Its sub-packages are what such tests need:
// cluster, a real SLURM cluster; jupyter, a real client; arch, the architecture.
//
//	make test TESTS=./tests/...
package tests
