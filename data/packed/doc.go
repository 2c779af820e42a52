// Package packed keeps the examples of a dataset decoded, in one file from which later training
// runs read them. It pays for a training run of many epochs whose images take long to decode;
// FFCV's files do the same for PyTorch (Leclerc et al., FFCV: Accelerating Training by Removing
// Data Bottlenecks, 2023).
//
//	folder, err := data.ImageFolder("photos", data.FolderConfig{Height: 224, Width: 224})
//	photos, err := packed.Keep("photos.packed", folder, packed.Config{Bytes: true})
//	trainSet := data.Augment(photos, 1, data.RandomCrop(8), data.RandomFlip(0.5))
//
// The first program writes the file, and later ones open it. To write a large dataset on several
// machines, call Write for parts of it (data.Range), and Open all files by a pattern.
//
// It doesn't compress: an image of 224x224 pixels in color takes 150 kB as bytes.
package packed
