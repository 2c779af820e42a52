package plugin

import (
	"context"

	"gonbatch/internal/fetch"
)

// The wheel by XLA's authors (PJRT API 0.81). It is built for glibc 2.27, so it also works on old
// clusters.
var cpuWheel = fetch.Wheel{
	Requirement: "xla-cpu-pjrt==0.0.1",
	SHA256:      "55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc",
	Size:        63461052,
	Member:      "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
}

// wheel gets the CPU plugin through the site's pip.
var wheel = way{
	version: "wheel-0.0.1",
	what:    cpuWheel.Command(),
	get: func(ctx context.Context, path string, opts Options) error {
		return fetch.PipWheel(ctx, cpuWheel, path, fetch.Options{Progress: opts.Progress})
	},
}
