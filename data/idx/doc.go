// Package idx reads and downloads datasets in MNIST's layout: two files of images and two of labels
// in IDX format. Packages mnist and fashionmnist name the files and know where to get them.
//
//	set := idx.Set{Package: "mnist", Title: "MNIST", Dir: dir, Classes: 10, Mean: 0.1307, Std: 0.3081}
//	train, test, err := set.Load(
//		idx.Part{Name: "mnist-train", Images: trainImages, Labels: trainLabels},
//		idx.Part{Name: "mnist-test", Images: testImages, Labels: testLabels})
package idx
