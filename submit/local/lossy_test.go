package local

import (
	"bytes"
	"strings"
	"testing"

	"gonbatch/tests/tmpfs"
)

// TestFullDisk: programs run to their end if the logs' disk is full, and submit says what is
// missing.
func TestFullDisk(t *testing.T) {
	for _, mpi := range []string{"", "mpirun.openmpi", noMPI} {
		tasks := 1
		if mpi != "" {
			tasks = 2
		}
		spec := newSpec(t, tasks, [2]string{"talk", "for ((i = 0; i < 4000; i++)); do echo a line of some fifty letters that fills the disk $i; done; touch \"$GONBATCH_RUN_DIR/well-${OMPI_COMM_WORLD_RANK:-${RANK:-0}}\""})
		tmpfs.Mount(t, spec.RunDir.Logs(), "size=64k")
		var errOut bytes.Buffer
		err := Runner{Out: &bytes.Buffer{}, Err: &errOut, LookPath: lookOnly(mpi)}.Run(t.Context(), staged(t, spec))
		if err != nil || tasks == 1 && !strings.Contains(errOut.String(), "warning: a part of the output is in no log: the disk of ") {
			t.Errorf("%d ranks: %v\n%s", tasks, err, &errOut)
		}
		for rank := range tasks {
			read(t, spec.RunDir.Path()+"/well-"+string(rune('0'+rank)))
		}
	}
}
