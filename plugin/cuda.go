package plugin

// The CUDA plugin and NVIDIA's libraries come as wheels; go-xla's installer knows how they must lie together.
const (
	cudaPlugin  = "cuda13"
	cudaPackage = "jax-cuda13-pjrt"
	cudaVersion = "0.12.0.1"
)

// nvidia gets the CUDA plugin and the libraries that it needs, about 3 GB. The folder must be named go-xla: NVIDIA's
// libraries are found by links with that name.
var nvidia = way{
	version: cudaVersion,
	what:    "go-xla's installer of " + cudaPackage + " " + cudaVersion,
	sub:     "go-xla/nvidia",
	get:     getNvidia,
}
