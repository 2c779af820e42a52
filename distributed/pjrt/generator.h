#ifndef GONBATCH_PJRT_GENERATOR_H
#define GONBATCH_PJRT_GENERATOR_H

// gb_generator_handler is the handler of XLA's custom call for random bits.
void *gb_generator_handler(void);

#endif
