package forecast

import "fmt"

// World is what a training run is to run on.
type World struct {
	Target      string `json:"target"`
	Nodes       int    `json:"nodes"`
	GPUsPerNode int    `json:"gpus_per_node"`
}

// Ranks is the number of ranks, each of which computes on one GPU.
func (w World) Ranks() int { return w.Nodes * w.GPUsPerNode }

// String is the world in words.
func (w World) String() string {
	if w.Nodes == 1 {
		return fmt.Sprintf("%d x %s on one node", w.Ranks(), w.Target)
	}
	return fmt.Sprintf("%d x %s on %d nodes", w.Ranks(), w.Target, w.Nodes)
}

// Question is what a program is asked. It ends at its first training step, and puts its Answer in
// the same file.
type Question struct {
	World World `json:"world"`
	// Batch takes the place of the batch size that the program gives, over all ranks; 0 leaves it.
	Batch int `json:"batch,omitempty"`
	// PlainSteps is how often a program without collectives may change variables, before the
	// optimizer of the world is there: more would be a training run without it. 0 is no limit.
	PlainSteps int `json:"plain_steps,omitempty"`
	// Answer is nil before the program has come to its step.
	Answer *Answer `json:"answer,omitempty"`
}

// Answer is what a training step takes.
type Answer struct {
	// Batch is the number of examples of a step, over all ranks; 0 if the program does not load
	// its batches with World.Loader.
	Batch int `json:"batch,omitempty"`
	// Examples is how many the dataset has.
	Examples int    `json:"examples,omitempty"`
	Memory   Memory `json:"memory"`
	// FLOPs are the operations of matrix products and convolutions of a GPU in a step; BytesMoved
	// is what its memory moves at least: arguments, results, and twice what its cache can't hold.
	FLOPs      float64 `json:"flops"`
	BytesMoved int64   `json:"bytes_moved"`
	// Reduced is what each GPU gives to the collectives of a step, in bytes.
	Reduced     int64    `json:"bytes_reduced"`
	Collectives []string `json:"collectives"`
	// Half reports whether the step computes in half precision.
	Half bool `json:"half_precision"`
	// Error is why there is no answer.
	Error string `json:"error,omitempty"`
}

// Memory is what a step takes of each GPU's memory, in bytes.
type Memory struct {
	Parameters int64 `json:"parameters"`
	Optimizer  int64 `json:"optimizer"`
	// Batch is that of the step's other arguments: above all, its examples.
	Batch int64 `json:"batch"`
	// Copies is what the step returns, such as new parameters, that takes the place of nothing.
	Copies int64 `json:"copies"`
	// Activations is what the step keeps while it runs: activations, gradients, the program.
	Activations int64 `json:"activations"`
	// Total is all of it.
	Total int64 `json:"total"`
}

// Fits reports whether the step finds room on the GPU.
func (m Memory) Fits(g GPU) bool { return m.Total <= g.Usable() }

// Floor is the time that a step can't be faster than, and what makes it so slow, in seconds.
type Floor struct {
	Compute float64 `json:"compute"`
	Memory  float64 `json:"memory"`
	Network float64 `json:"network"`
	// Step is the largest of them: at best they overlap completely.
	Step float64 `json:"step"`
}

// Floor computes it from the GPU's data sheet.
func (g GPU) Floor(w World, a Answer) Floor {
	peak := g.TF32
	if a.Half {
		peak = g.Half
	}
	f := Floor{Compute: a.FLOPs / peak, Memory: float64(a.BytesMoved) / g.Bandwidth, Network: g.reduceTime(w, float64(a.Reduced))}
	f.Step = max(f.Compute, f.Memory, f.Network)
	return f
}

// reduceTime is how long a ring of GPUs takes for an all-reduce, in which each GPU sends nearly
// twice what it gives. Between nodes, the GPUs of a node share that and use all of its adapters.
func (g GPU) reduceTime(w World, bytes float64) float64 {
	ring := func(n int) float64 { return 2 * bytes * float64(n-1) / float64(n) }
	return max(ring(w.GPUsPerNode)/g.Link, ring(w.Nodes)/(g.Network*float64(w.GPUsPerNode)))
}
