// Package tarset reads examples from tar files in WebDataset's layout, called shards. The files of
// an example, its members, are next to each other in a shard and have the same name up to the first
// dot, which is the example's key: n01/0001.jpg, n01/0001.cls.
//
//	photos, err := tarset.Open("photos-{0000..0099}.tar", tarset.Config{
//		Inputs: []tarset.Field{tarset.Image(data.ImageDecoder{Height: 224, Width: 224})},
//		Labels: []tarset.Field{tarset.Class()},
//	})
//
// A Field makes a tensor of the members; write a function for those that the package lacks:
//
//	func length(s *tarset.Sample) (*tensors.Tensor, error) {
//		text, err := s.Bytes("txt")
//		return tensors.FromValue([]float32{float32(len(text))}), err
//	}
//
// Unlike WebDataset, Open does not stream: an index says where each example is, so an example is
// read by its number, as from any other data.Dataset. Training shuffles all of them, in any number
// of shards, each rank reads its own part, and resuming is exact. Shards are files on a file
// system, and not compressed. Stream reads shards from beginning to end, also compressed ones.
package tarset
