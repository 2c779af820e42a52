package ranktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gonbatch/internal/bounded"
)

// stuckSource wraps MPICH so that rank 1 never returns from MPI_Finalize.
const stuckSource = `
#include <unistd.h>
int MPI_Comm_rank(int, int *);
int PMPI_Finalize(void);
int MPI_Finalize(void) {
  int rank = 0;
  MPI_Comm_rank(0x44000000, &rank); /* MPI_COMM_WORLD */
  while (rank == 1) pause();
  return PMPI_Finalize();
}
`

// StuckMPI builds a variant of MPICH whose MPI_Finalize never returns on rank 1, as happens with
// UCX on a busy machine.
func StuckMPI(t *testing.T) (library string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "stuck.c")
	library = filepath.Join(dir, "libmpich-stuck.so")
	if err := os.WriteFile(source, []byte(stuckSource), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := bounded.CombinedOutput(exec.Command("cc", "-shared", "-fPIC", "-o", library, source, "-Wl,--no-as-needed", "-l:libmpich.so.12")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return library
}
