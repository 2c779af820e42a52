// Package files finds the files of a dataset, and keeps what was computed from them, such as an
// index: in memory if that is quick, otherwise in a folder, for the next program. It knows no
// format.
//
//	list, err := files.Find("train-{0000..0099}.tar")
//	kept, err := files.Keep(files.Derived{Files: list, Kind: "index 1"}, writeIndex)
//	n, err := kept.ReadAt(buffer, 0)
package files
