#ifndef GONBATCH_MEMORY_TRIM_H
#define GONBATCH_MEMORY_TRIM_H

// gb_trim gives the kernel the memory of small blocks that are free. It does nothing without glibc.
void gb_trim(void);

#endif
