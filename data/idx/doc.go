// Package idx reads and downloads datasets in MNIST's layout: two files of images and two of labels
// in IDX format. Packages mnist and fashionmnist name the files and know where to get them.
//
//	set := idx.Set{Package: "mnist", Title: "MNIST", Classes: 10, Mean: 0.1307, Std: 0.3081, ...}
//	err := set.Fetch(ctx, dir, os.Stderr)
//	train, test, err := set.Load(dir)
package idx
