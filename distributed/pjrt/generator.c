// The XLA custom call that generates random bits by Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). The bits are those of XLA's own rng_bit_generator.
#include <string.h>

#include "frame.h"
#include "trace.h"

enum { ROUNDS = 10, BLOCKS = 32, WORDS = 4 };

// A counter has 128 bits.
typedef struct {
  uint64_t low, high;
} counter;

static counter after(counter c, uint64_t n) { return (counter){c.low + n, c.high + (c.low + n < n)}; }

// philox writes the words of BLOCKS counters, beginning with `first`. Loops over blocks become
// vector instructions.
static inline __attribute__((always_inline)) void philox(uint64_t key, counter first, uint32_t *out) {
  uint32_t a[BLOCKS], b[BLOCKS], c[BLOCKS], d[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    counter at = after(first, (uint64_t)i);
    a[i] = (uint32_t)at.low;
    b[i] = (uint32_t)(at.low >> 32);
    c[i] = (uint32_t)at.high;
    d[i] = (uint32_t)(at.high >> 32);
  }
  uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < BLOCKS; i++) {
      uint64_t p = (uint64_t)0xD2511F53u * a[i], q = (uint64_t)0xCD9E8D57u * c[i];
      a[i] = (uint32_t)(q >> 32) ^ b[i] ^ key0;
      b[i] = (uint32_t)q;
      c[i] = (uint32_t)(p >> 32) ^ d[i] ^ key1;
      d[i] = (uint32_t)p;
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int i = 0; i < BLOCKS; i++) {
    out[WORDS * i] = a[i];
    out[WORDS * i + 1] = b[i];
    out[WORDS * i + 2] = c[i];
    out[WORDS * i + 3] = d[i];
  }
}

static inline __attribute__((always_inline)) void fill_by_blocks(uint64_t key, counter first, uint32_t *out, int64_t words) {
  for (; words >= BLOCKS * WORDS; words -= BLOCKS * WORDS, out += BLOCKS * WORDS) {
    philox(key, first, out);
    first = after(first, BLOCKS);
  }
  uint32_t last[BLOCKS * WORDS];
  philox(key, first, last);
  if (words > 0) memcpy(out, last, (size_t)words * sizeof *out);
}

__attribute__((optimize("O3"))) static void fill(uint64_t key, counter first, uint32_t *out, int64_t words) {
  fill_by_blocks(key, first, out, words);
}

#ifdef __x86_64__
__attribute__((optimize("O3"), target("avx2"))) static void fill_avx2(uint64_t key, counter first, uint32_t *out, int64_t words) {
  fill_by_blocks(key, first, out, words);
}

static int has_avx2(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2");
}
#else
static int has_avx2(void) { return 0; }
#define fill_avx2 fill
#endif

// It takes the state, which is a key and a counter, and returns the next state and the bits.
gb_ffi_error *gb_generator_call(gb_ffi_call_frame *frame) {
  if (gb_frame_prepares(frame)) return NULL;
  if (frame->args.size != 1 || frame->rets.size != 2) return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: random bits: wrong number of operands");
  gb_ffi_buffer *state = frame->args.values[0], *next = frame->rets.values[0], *out = frame->rets.values[1];
  if (state->dtype != GB_FFI_U64 || next->dtype != GB_FFI_U64 || (out->dtype != GB_FFI_U32 && out->dtype != GB_FFI_U64))
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: random bits: wrong element types");
  int64_t words = gb_count(out) * (out->dtype == GB_FFI_U64 ? 2 : 1);
  int64_t began = gb_trace_begin();
  uint64_t *s = state->data, key = s[0];
  counter first = {s[1], s[2]}, end = after(first, (uint64_t)(words + WORDS - 1) / WORDS);
  (has_avx2() ? fill_avx2 : fill)(key, first, out->data, words);
  memcpy(next->data, (uint64_t[]){key, end.low, end.high}, 3 * sizeof(uint64_t));
  gb_trace_end(began, GB_TRACE_RANDOM, (int64_t[]){words * (int64_t)sizeof(uint32_t)}, 1);
  return NULL;
}
