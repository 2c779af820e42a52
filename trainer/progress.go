package trainer

import (
	"time"

	"github.com/gomlx/compute/support/xslices"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
	"gonbatch/trainer/internal/saved"
)

// position is where a training run is and what it has seen: everything that is not a tensor and
// can't be computed again. Each checkpoint has one.
type position struct {
	Epoch int   `json:"epoch"` // The current one, from 0.
	Batch int   `json:"batch"` // Batches of the epoch that are done.
	Step  int64 `json:"step"`  // Updates that are done.

	// End is why the training ended; nil while it continues. Finished is set when the work at its
	// end is done too.
	End      *ending `json:"end,omitempty"`
	Finished bool    `json:"finished"`

	// Validated is the update after which the last validation ran; 0 before the first. Metrics has
	// the newest value of each metric.
	Validated int64              `json:"validated"`
	Metrics   checkpoint.Metrics `json:"metrics,omitempty"`

	saved.By

	Elapsed  time.Duration `json:"elapsed_ns"` // On rank 0, over all restarts.
	Restarts int           `json:"restarts"`

	// Since has the losses and training metrics since the last report: of all ranks in a
	// checkpoint, of this rank in memory.
	Since     []mean             `json:"values_since_report"`
	BaseRates checkpoint.Metrics `json:"base_learning_rates"`
	Seed      uint64             `json:"seed"`
	BatchSize int                `json:"batch_size"` // Over all ranks.
	Batches   int                `json:"batches"`    // In an epoch.
	PerUpdate int                `json:"per_update"` // Batches for an update.
	Dataset   string             `json:"dataset"`
	Examples  int                `json:"examples"` // Of the dataset.
	InOrder   bool               `json:"overfits"` // The examples are in the dataset's order.
	Precision string             `json:"precision"`
	Stopping  stopping           `json:"early_stopping"`
	Plateau   plateau            `json:"plateau"`
	Best      *checkpoint.Number `json:"best"`    // The best value of checkpoint.monitor.
	BestOf    string             `json:"best_of"` // The goal for which it was best.

	// Stream is where the training is in a stream: all ranks in a checkpoint, this rank in memory.
	Stream *distributed.StreamPosition `json:"stream,omitempty"`

	// BeganAfter has the steps after which the phases before this one ended.
	BeganAfter []int64 `json:"began_after,omitempty"`

	// Facts are the training's identity, Means is what its examples are, and Validation has the
	// fingerprints of its validation sets, by the stage of their metrics.
	Facts      facts             `json:"facts,omitempty"`
	Means      meaning           `json:"means"`
	Validation map[string]string `json:"validation,omitempty"`

	// State lists the variables of the optimizers.
	State []string `json:"optimizer_state,omitempty"`

	Callbacks map[string][]byte `json:"callbacks,omitempty"`
}

// mean is a running mean of losses.
type mean struct {
	Sum   checkpoint.Number `json:"sum"`
	Count float64           `json:"count"` // The sum of the weights of the losses, or a rank's part of it.
}

func (m *mean) add(value, weight float64) {
	m.Sum, m.Count = m.Sum+checkpoint.Number(value*weight), m.Count+weight
}

// divided returns a rank's part of the totals of that many ranks. So each batch counts the same in
// the next report, even those that were trained by another number of ranks.
func divided(totals []mean, ranks int) []mean {
	n := float64(max(ranks, 1))
	return xslices.Map(totals, func(m mean) mean { return mean{m.Sum / checkpoint.Number(n), m.Count / n} })
}
