// Package tests tests the whole system: the example notebooks in a real Jupyter client, and
// everything that only shows when all parts work together. Its sub-packages provide what such tests
// need, such as a real SLURM cluster (cluster) and a real client (jupyter), or test the tree itself
// (arch).
//
//	make test TESTS=./tests/...
package tests
