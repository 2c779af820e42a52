#ifndef GONBATCH_YIELD_H
#define GONBATCH_YIELD_H

// gb_yield_is_found reports whether libraries that are opened at run time call this program's
// sched_yield.
int gb_yield_is_found(void);

#endif
