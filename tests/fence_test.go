package tests

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/tests/cluster"
)

// fenceSource is a rank that enters a PMIx fence 200 times, after pauses of random length, and
// writes the times of its arrivals and departures to a file.
const fenceSource = `
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
typedef struct { char nspace[256]; uint32_t rank; } proc;
int PMIx_Init(proc *, void *, size_t);
int PMIx_Fence(const proc *, size_t, const void *, size_t);
int PMIx_Finalize(const void *, size_t);
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
int main(int count, char **argument) {
  proc all;
  if (count != 2 || PMIx_Init(&all, NULL, 0) != 0) return 1;
  char name[4096];
  snprintf(name, sizeof name, "%s/rank-%u", argument[1], all.rank);
  FILE *file = fopen(name, "w");
  if (file == NULL) return 1;
  srand(all.rank);
  all.rank = UINT32_MAX - 1;  // PMIX_RANK_WILDCARD
  for (int i = 0; i < 200; i++) {
    if (rand() % 3 == 0) usleep(rand() % 20000);
    double arrived = now();
    if (PMIx_Fence(&all, 1, NULL, 0) != 0) return 1;
    fprintf(file, "%.9f %.9f\n", arrived, now());
  }
  return fclose(file) != 0 || PMIx_Finalize(NULL, 0) != 0;
}
`

// fences checks that no rank of a job leaves a PMIx fence before all have arrived: Open MPI's
// MPI_Init relies on that, and SLURM's default fence doesn't guarantee it.
func fences(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	out := u.mustSubmit(t, "--follow", u.write(t, "fences.ipynb", "!env | grep ^SLURM_PMIX_FENCE="))
	kind := regexp.MustCompile(`(?m)^SLURM_PMIX_FENCE=.*$`).FindString(out)
	if kind == "" {
		t.Fatalf("the job chooses no kind of fence:\n%s", out)
	}
	source, program := filepath.Join(u.folder, "fences.c"), filepath.Join(u.folder, "fences")
	if err := os.WriteFile(source, []byte(fenceSource), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := bounded.CombinedOutput(exec.Command("cc", "-o", program, source, "-l:libpmix.so.2")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := c.Run("bash", "-c", "export "+kind+`; srun --mpi=pmix -N2 --ntasks-per-node=2 "$@"`, "fences", program, u.folder); err != nil {
		t.Fatal(err)
	}
	var lastArrival, firstDeparture []float64
	for rank := range 4 {
		for i, times := range fenceTimes(t, filepath.Join(u.folder, fmt.Sprint("rank-", rank))) {
			if i == len(lastArrival) {
				lastArrival, firstDeparture = append(lastArrival, 0), append(firstDeparture, math.Inf(1))
			}
			lastArrival[i], firstDeparture[i] = max(lastArrival[i], times[0]), min(firstDeparture[i], times[1])
		}
	}
	early := 0
	for i := range lastArrival {
		if firstDeparture[i] < lastArrival[i] {
			early++
		}
	}
	if early > 0 || len(lastArrival) != 200 {
		t.Errorf("%s: a rank left %d of %d fences before all ranks had arrived", kind, early, len(lastArrival))
	}
}

// fenceTimes reads a rank's arrivals and departures, in seconds of the machine's monotonic clock.
func fenceTimes(t *testing.T, name string) (times [][2]float64) {
	t.Helper()
	for line := range strings.Lines(read(t, name)) {
		var at [2]float64
		if _, err := fmt.Sscan(line, &at[0], &at[1]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		times = append(times, at)
	}
	return times
}
