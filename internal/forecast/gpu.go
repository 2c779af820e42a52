package forecast

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// ForGPU reports whether this process computes a forecast: its graphs are compiled for a GPU,
// although its backend is a CPU.
var ForGPU atomic.Bool

// GPU is a kind of GPU, with the figures of its maker's data sheet.
type GPU struct {
	Name string // Name is what --target takes.
	Full string // Full is the maker's name for it.
	// Capacity is the memory that a program sees, in bytes.
	Capacity int64
	// Bandwidth is that of the memory, in bytes a second.
	Bandwidth float64
	// FP32, TF32 and Half are the most operations a second, without sparsity: in float32, in
	// float32 by its matrix units, and in half precision by them.
	FP32, TF32, Half float64
	// Link is what a GPU sends to the others of its node while it receives as much, in bytes a
	// second.
	Link float64
	// Network is what a GPU's share of the node's network adapters sends, in the maker's reference
	// system, in bytes a second.
	Network float64
	// Origin says where the figures come from.
	Origin string

	chip chip
}

// chip is what XLA's code generator asks.
type chip struct {
	major, minor            int // Of the compute capability.
	cores                   int // Streaming multiprocessors.
	threads                 int // Resident on one of them, at most.
	fpus                    int // Of one of them.
	clock                   float64
	cache                   int64 // L2.
	sharedCore, sharedOptIn int   // Shared memory of one of them, and of a block at most.
}

const (
	giga = 1e9
	tera = 1e12
)

// usable is the part of a GPU's memory that XLA's allocator takes, and a program can have.
const usable = 0.75

var gpus = []GPU{
	{
		Name: "a100-40", Full: "NVIDIA A100 40 GB SXM", Capacity: 42297786368, Bandwidth: 1555 * giga,
		FP32: 19.5 * tera, TF32: 156 * tera, Half: 312 * tera, Link: 300 * giga, Network: 25 * giga,
		Origin: "NVIDIA A100 data sheet (2021); network of the DGX A100",
		chip:   chip{8, 0, 108, 2048, 64, 1.41, 40 << 20, 167936, 166912},
	},
	{
		Name: "a100-80", Full: "NVIDIA A100 80 GB SXM", Capacity: 85050654720, Bandwidth: 2039 * giga,
		FP32: 19.5 * tera, TF32: 156 * tera, Half: 312 * tera, Link: 300 * giga, Network: 25 * giga,
		Origin: "NVIDIA A100 data sheet (2021); network of the DGX A100",
		chip:   chip{8, 0, 108, 2048, 64, 1.41, 40 << 20, 167936, 166912},
	},
	{
		Name: "h100", Full: "NVIDIA H100 80 GB SXM", Capacity: 84978434048, Bandwidth: 3350 * giga,
		FP32: 67 * tera, TF32: 494.5 * tera, Half: 989.5 * tera, Link: 450 * giga, Network: 50 * giga,
		Origin: "NVIDIA H100 data sheet (2023); network of the DGX H100",
		chip:   chip{9, 0, 132, 2048, 128, 1.98, 50 << 20, 233472, 232448},
	},
	{
		Name: "h200", Full: "NVIDIA H200 141 GB SXM", Capacity: 150028156928, Bandwidth: 4800 * giga,
		FP32: 67 * tera, TF32: 494.5 * tera, Half: 989.5 * tera, Link: 450 * giga, Network: 50 * giga,
		Origin: "NVIDIA H200 data sheet (2024); network of the DGX H200",
		chip:   chip{9, 0, 132, 2048, 128, 1.98, 50 << 20, 233472, 232448},
	},
	{
		Name: "b200", Full: "NVIDIA B200 180 GB SXM", Capacity: 191000000000, Bandwidth: 8000 * giga,
		FP32: 75 * tera, TF32: 1125 * tera, Half: 2250 * tera, Link: 900 * giga, Network: 50 * giga,
		Origin: "NVIDIA DGX B200 data sheet (2024), an eighth of the system",
		chip:   chip{10, 0, 148, 2048, 128, 1.965, 126 << 20, 233472, 232448},
	},
	{
		Name: "l40s", Full: "NVIDIA L40S 48 GB", Capacity: 47810936832, Bandwidth: 864 * giga,
		FP32: 91.6 * tera, TF32: 183 * tera, Half: 362 * tera, Link: 32 * giga, Network: 25 * giga,
		Origin: "NVIDIA L40S data sheet (2023); PCIe 4.0 x16; a network of 200 Gb/s for each GPU is assumed",
		chip:   chip{8, 9, 142, 1536, 128, 2.52, 96 << 20, 102400, 101376},
	},
	{
		Name: "t4", Full: "NVIDIA T4 16 GB", Capacity: 15655829504, Bandwidth: 320 * giga,
		FP32: 8.1 * tera, TF32: 8.1 * tera, Half: 65 * tera, Link: 16 * giga, Network: 12.5 * giga,
		Origin: "NVIDIA T4 data sheet (2019); PCIe 3.0 x16; a network of 100 Gb/s for each GPU is assumed",
		chip:   chip{7, 5, 40, 1024, 64, 1.59, 4 << 20, 65536, 65536},
	},
}

// ambiguous and gone are names that users know, and why they find no GPU.
var others = map[string]string{
	"a100": "an A100 has 40 or 80 GB: give a100-40 or a100-80",
	"v100": "CUDA 13, which XLA's plugin is made for, no longer supports the V100",
}

// Names are those of all GPUs.
func Names() (names []string) {
	for _, g := range gpus {
		names = append(names, g.Name)
	}
	return names
}

// Find finds a GPU by its name.
func Find(name string) (GPU, error) {
	i := slices.IndexFunc(gpus, func(g GPU) bool { return strings.EqualFold(g.Name, name) })
	if i >= 0 {
		return gpus[i], nil
	}
	if why, ok := others[strings.ToLower(name)]; ok {
		return GPU{}, fmt.Errorf("the target %q: %s", name, why)
	}
	return GPU{}, fmt.Errorf("the target %q is not known: give one of %s", name, strings.Join(Names(), ", "))
}

// Usable is the memory that a program can have, in bytes.
func (g GPU) Usable() int64 { return int64(usable * float64(g.Capacity)) }

// Cache is what the GPU need not write to its memory, in bytes.
func (g GPU) Cache() int64 { return g.chip.cache }

// Config describes the GPU to XLA: a GpuTargetConfigProto, as text.
func (g GPU) Config() string {
	c := g.chip
	return fmt.Sprintf(`gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: %d
  threads_per_core_limit: %d
  core_count: %d
  fpus_per_core: %d
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: %.0f
  l2_cache_size: %d
  clock_rate_ghz: %g
  device_memory_size: %d
  shared_memory_per_block_optin: %d
  cuda_compute_capability { major: %d minor: %d }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
device_description_str: %q
`, c.sharedCore, c.threads, c.cores, c.fpus, g.Bandwidth, c.cache, c.clock, g.Capacity, c.sharedOptIn, c.major, c.minor, g.Full)
}
