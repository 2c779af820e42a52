// Huge pages for the C library's heap, which holds the blocks that are too small for the pool. Any
// thread may call these functions.
#ifndef GONBATCH_MEMORY_HEAP_H
#define GONBATCH_MEMORY_HEAP_H

// gb_heap_begin makes the heap grow in large steps: a huge page must be whole when a part of it is
// first used.
void gb_heap_begin(void);

// gb_heap_advise requests huge pages for what the heap has grown by since the last call. A call
// that finds nothing new takes no system call.
void gb_heap_advise(void);

// gb_heap_shrunk says that the heap has become smaller: where it grows again, the advice is lost.
void gb_heap_shrunk(void);

#endif
