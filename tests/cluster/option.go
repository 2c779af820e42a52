package cluster

// Option changes the cluster that Start brings up.
type Option func(*settings)

type settings struct {
	nodes, cpus, gpus, memoryMB int
	gpuType, name               string
	conf                        []string
}

func newSettings(opts []Option) settings {
	s := settings{nodes: 3, cpus: 4, gpus: 2, memoryMB: 2000, name: "testbed"}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// Nodes sets the number of compute nodes (default 3).
func Nodes(n int) Option { return func(s *settings) { s.nodes = n } }

// CPUs sets the number of CPUs that each node declares (default 4). They may be more than the
// machine has.
func CPUs(n int) Option { return func(s *settings) { s.cpus = n } }

// GPUs sets the number of GPUs that each node declares (default 2). They are devices that nothing
// can compute on: jobs are given them and see CUDA_VISIBLE_DEVICES.
func GPUs(n int) Option { return func(s *settings) { s.gpus = n } }

// GPUType gives the GPUs a type (default: none).
func GPUType(name string) Option { return func(s *settings) { s.gpuType = name } }

// MemoryMB sets the memory in MB that each node declares (default 2000).
func MemoryMB(n int) Option { return func(s *settings) { s.memoryMB = n } }

// Conf appends lines to slurm.conf.
func Conf(lines ...string) Option { return func(s *settings) { s.conf = append(s.conf, lines...) } }

// Name sets the cluster's name (default testbed).
func Name(name string) Option { return func(s *settings) { s.name = name } }
