// Package cifar reads and downloads datasets in the format of CIFAR's binary version: small images
// in color, each with its label, as records of the same length in a few files. Packages cifar10 and
// cifar100 name the files and know where to get them.
//
// It does not read the versions for Python and Matlab.
//
//	set := cifar.Set{Package: "cifar10", Title: "CIFAR-10", Folder: "cifar-10-batches-bin", Labels: 1, Classes: 10, ...}
//	train, test, err := set.Load(dir)
package cifar
