#ifndef GONBATCH_ONEDNN_WIDE_H
#define GONBATCH_ONEDNN_WIDE_H

#include <math.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// GB_INDEPENDENT says of a loop that no element depends on another one's result.
#if defined(__clang__)
#define GB_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define GB_INDEPENDENT _Pragma("GCC ivdep")
#endif

// GB_INLINE marks the function that GB_WIDE compiles.
#define GB_INLINE static inline __attribute__((always_inline))

// GB_WIDE(name, parameters, arguments...) defines name, which runs name##_inline. On x86-64 that is
// compiled for processors with AVX-512, for those with AVX2, and for all others, and the one that
// this processor runs fastest is chosen. Each does the same with every element, bit for bit if the
// file forbids contractions, as adam.c does. The first argument of name##_inline is a function that
// replaces 16 * n numbers by their square roots: C's sqrtf sets errno, so compilers don't vectorize
// it.
typedef void gb_roots(float *x, int64_t n);

GB_INLINE void gb_roots_plain(float *x, int64_t n) {
  for (int64_t i = 0; i < 16 * n; i++) x[i] = sqrtf(x[i]);
}

#if defined(__x86_64__)
#if defined(__clang__)  // It chooses the width itself.
#define GB_AVX512 "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"
#else
#define GB_AVX512 "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,prefer-vector-width=512"
#endif
#define GB_AVX2 "avx2,fma"

__attribute__((target(GB_AVX512))) GB_INLINE void gb_roots_512(float *x, int64_t n) {
  for (int64_t i = 0; i < 16 * n; i += 16) _mm512_storeu_ps(x + i, _mm512_sqrt_ps(_mm512_loadu_ps(x + i)));
}

__attribute__((target(GB_AVX2))) GB_INLINE void gb_roots_256(float *x, int64_t n) {
  for (int64_t i = 0; i < 16 * n; i += 8) _mm256_storeu_ps(x + i, _mm256_sqrt_ps(_mm256_loadu_ps(x + i)));
}

#define GB_WIDE(name, parameters, ...)                                                                            \
  __attribute__((target(GB_AVX512))) static void name##_512 parameters { name##_inline(gb_roots_512, __VA_ARGS__); } \
  __attribute__((target(GB_AVX2))) static void name##_256 parameters { name##_inline(gb_roots_256, __VA_ARGS__); }   \
  static void name parameters {                                                                                   \
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) \
      name##_512(__VA_ARGS__);                                                                                    \
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                                     \
      name##_256(__VA_ARGS__);                                                                                    \
    else                                                                                                          \
      name##_inline(gb_roots_plain, __VA_ARGS__);                                                                 \
  }
#else
#define GB_WIDE(name, parameters, ...) \
  static void name parameters { name##_inline(gb_roots_plain, __VA_ARGS__); }
#endif

#endif
