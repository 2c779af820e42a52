#ifndef GONBATCH_MPI_SIGNALS_H
#define GONBATCH_MPI_SIGNALS_H

// gb_signals_save saves the signal handlers of the process. gb_signals_restore restores those that
// have changed since.
void gb_signals_save(void);
void gb_signals_restore(void);

#endif
