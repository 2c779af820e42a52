package cluster

// Option changes the cluster that Start brings up.
type Option func(*settings)

type settings struct {
	nodes, gpus   int
	gpuType, name string
	gpuScript     string
	prolog        string
}

func newSettings(opts []Option) settings {
	s := settings{nodes: 3, gpus: 2, name: "testbed"}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// Nodes sets the number of compute nodes (default 3).
func Nodes(n int) Option { return func(s *settings) { s.nodes = n } }

// GPUs sets the number of GPUs that each node declares (default 2). These devices cannot compute;
// jobs only get them in CUDA_VISIBLE_DEVICES.
func GPUs(n int) Option { return func(s *settings) { s.gpus = n } }

// GPUType gives the GPUs a type (default none).
func GPUType(name string) Option { return func(s *settings) { s.gpuType = name } }

// InDev makes the nodes' programs find the GPUs in /dev. script runs a command with such a /dev
// (see ranktest.GPUScript).
func InDev(script string) Option { return func(s *settings) { s.gpuScript = script } }

// Name sets the cluster's name (default testbed).
func Name(name string) Option { return func(s *settings) { s.name = name } }

// Prolog sets a script that each node runs before a job's first step on it. SLURMD_NODENAME is the
// node's name.
func Prolog(script string) Option { return func(s *settings) { s.prolog = script } }
