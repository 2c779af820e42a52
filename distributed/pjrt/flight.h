#ifndef GONBATCH_PJRT_FLIGHT_H
#define GONBATCH_PJRT_FLIGHT_H

#include "plugin.h"

// A flight is a sum over all ranks that runs, in place, while the program computes. A thread of its
// own runs the flights one after the other, in the order in which they started.

// gb_flight_start starts a flight. The memory must stay as it is until gb_flight_finish. It returns
// 0, or 1 and an error text.
int gb_flight_start(gb_transport transport, void *data, int64_t count, int dtype, char *error, size_t error_size);

// gb_flight_finish waits for the flight of this memory. It returns 0, or 1 and an error text. After
// an error, no flight uses its memory any more.
int gb_flight_finish(void *data, char *error, size_t error_size);

// gb_flight_drain waits for all flights, because only one collective may run at a time. It returns
// 0, or 1 and the error text of one that has failed.
int gb_flight_drain(char *error, size_t error_size);

// gb_flight_end waits for all flights and forgets them: the program that started them has failed,
// and its memory is about to be freed. It writes the first failure of the program to `error`: the
// message, unless there was one before. What the program still asks of flights fails with it too.
void gb_flight_end(const char *message, char *error, size_t error_size);

// gb_flight_next says that another program begins, to which an earlier failure doesn't matter.
void gb_flight_next(void);

#endif
