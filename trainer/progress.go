package trainer

import (
	"encoding/json"
	"time"

	"gonbatch/checkpoint"
)

// position is where a training is and what it has seen: all that is neither a tensor nor can be
// computed again. It is a part of each checkpoint.
type position struct {
	Epoch int   `json:"epoch"` // That is under way, from 0.
	Batch int   `json:"batch"` // Batches of it that are done.
	Step  int64 `json:"step"`  // Updates that are done.

	// End is why the training ended; nil while it goes on. Finished says that the work of its end
	// is done too.
	End      *ending `json:"end,omitempty"`
	Finished bool    `json:"finished"`

	// Validated is the update after which the last validation was; 0 before the first. Metrics are
	// the newest of each name.
	Validated int64              `json:"validated"`
	Metrics   checkpoint.Metrics `json:"metrics,omitempty"`

	// Run and Name say which training it is: the name of the run directory, if there is one, and
	// Config.Name. Writer is the trainer that wrote the checkpoint, by a random number.
	Run    string `json:"run,omitempty"`
	Name   string `json:"name"`
	Writer string `json:"writer"`

	Elapsed  time.Duration `json:"elapsed_ns"` // Of rank 0, all restarts together.
	Restarts int           `json:"restarts"`

	// Since are the losses since the last report: over all ranks in a checkpoint, of this rank in
	// memory.
	Since     []mean             `json:"loss_since_report"`
	BaseRates checkpoint.Metrics `json:"base_learning_rates"`
	Seed      uint64             `json:"seed"`
	BatchSize int                `json:"batch_size"` // Over all ranks.
	Batches   int                `json:"batches"`    // In an epoch.
	PerUpdate int                `json:"per_update"` // Batches for an update.
	Dataset   string             `json:"dataset"`
	Examples  int                `json:"examples"` // Of the dataset.
	Overfits  bool               `json:"overfits"` // The order of the examples is the dataset's.
	Precision string             `json:"precision"`
	Stopping  stopping           `json:"early_stopping"`
	Best      *checkpoint.Number `json:"best"`    // Of checkpoint.monitor.
	BestOf    string             `json:"best_of"` // The goal that it was best for.

	Callbacks map[string]json.RawMessage `json:"callbacks,omitempty"`
}

// mean is a running mean of losses.
type mean struct {
	Sum   checkpoint.Number `json:"sum"`
	Count int               `json:"count"`
}

func (m *mean) add(value float64) { m.Sum, m.Count = m.Sum+checkpoint.Number(value), m.Count+1 }
