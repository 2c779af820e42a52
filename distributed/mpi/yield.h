#ifndef GONBATCH_MPI_YIELD_H
#define GONBATCH_MPI_YIELD_H

// gb_yield_begin makes the sched_yield of this program sleep for threads that wait. It is called
// once, as early as possible. gb_yield_end ends that.
void gb_yield_begin(void);
void gb_yield_end(void);

// gb_wait_begins says that what this thread waits for from now on is something else than before.
void gb_wait_begins(void);

// gb_functions_are_found reports whether libraries that are opened at run time call this program's
// sched_yield and pthread_setname_np. In binaries that Go's own linker has linked, such as those of
// the kernel's cells, they don't.
int gb_functions_are_found(void);

#endif
