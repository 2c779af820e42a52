// Scales images with SSE2, which every amd64 processor has. It computes the same integers as
// Bilinear does in Go.
#include "vector.h"

#include <emmintrin.h>
#include <string.h>

enum { ONE_BITS = 13 };

// pair returns two weights in each 32-bit lane.
static inline __m128i pair(const int16_t *weights) {
  int32_t both;
  memcpy(&both, weights, sizeof both);
  return _mm_set1_epi32(both);
}

// load_pixel returns a pixel in the lowest lane.
static inline __m128i load_pixel(const uint8_t *from) {
  int32_t pixel;
  memcpy(&pixel, from, sizeof pixel);
  return _mm_cvtsi32_si128(pixel);
}

// to_bytes rounds sums of four pixels.
static inline __m128i to_bytes(__m128i a, __m128i b, __m128i c, __m128i d) {
  a = _mm_packs_epi32(_mm_srli_epi32(a, ONE_BITS), _mm_srli_epi32(b, ONE_BITS));
  c = _mm_packs_epi32(_mm_srli_epi32(c, ONE_BITS), _mm_srli_epi32(d, ONE_BITS));
  return _mm_packus_epi16(a, c);
}

// mean_of_pixels returns a sum of neighbors in each 32-bit lane.
static inline __m128i mean_of_pixels(const uint8_t *from, const int16_t *weights, int taps) {
  const __m128i zero = _mm_setzero_si128();
  __m128i sum = _mm_set1_epi32(1 << (ONE_BITS - 1));
  for (int k = 0; k < taps; k += 2) {
    __m128i both = _mm_unpacklo_epi8(load_pixel(from + 4 * k), load_pixel(from + 4 * k + 4));
    sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_unpacklo_epi8(both, zero), pair(weights + k)));
  }
  return sum;
}

// narrow writes a row of the new width, rounded up to four pixels.
static inline void narrow(uint8_t *to, const uint8_t *from, const int32_t *first, const int16_t *weights, int columns, int taps) {
  for (int x = 0; x < columns; x += 4) {
    __m128i sums[4];
    for (int i = 0; i < 4; i++) {
      int at = x + i < columns ? x + i : columns - 1;
      sums[i] = mean_of_pixels(from + 4 * (ptrdiff_t)first[at], weights + (ptrdiff_t)at * taps, taps);
    }
    _mm_storeu_si128((__m128i *)(to + 4 * (ptrdiff_t)x), to_bytes(sums[0], sums[1], sums[2], sums[3]));
  }
}

// mean_of_rows writes 16 bytes of the means of rows that have the new width.
static inline __m128i mean_of_rows(const uint8_t *kept, size_t size, int first, const int16_t *weights, int taps) {
  const __m128i zero = _mm_setzero_si128();
  __m128i a = _mm_set1_epi32(1 << (ONE_BITS - 1)), b = a, c = a, d = a;
  int row = first % taps;
  for (int k = 0; k < taps; k += 2) {
    const __m128i *one = (const __m128i *)(kept + size * row);
    row = row + 1 == taps ? 0 : row + 1;
    const __m128i *next = (const __m128i *)(kept + size * row);
    row = row + 1 == taps ? 0 : row + 1;
    __m128i weight = pair(weights + k), p = _mm_loadu_si128(one), q = _mm_loadu_si128(next);
    __m128i low = _mm_unpacklo_epi8(p, q), high = _mm_unpackhi_epi8(p, q);
    a = _mm_add_epi32(a, _mm_madd_epi16(_mm_unpacklo_epi8(low, zero), weight));
    b = _mm_add_epi32(b, _mm_madd_epi16(_mm_unpackhi_epi8(low, zero), weight));
    c = _mm_add_epi32(c, _mm_madd_epi16(_mm_unpacklo_epi8(high, zero), weight));
    d = _mm_add_epi32(d, _mm_madd_epi16(_mm_unpackhi_epi8(high, zero), weight));
  }
  return _mm_or_si128(to_bytes(a, b, c, d), _mm_set1_epi32((int)0xff000000));
}

void gb_scale_bilinear(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t from_stride,
                       const int32_t *column_first, const int16_t *column_weights, int columns, int column_taps,
                       const int32_t *row_first, const int16_t *row_weights, int rows, int row_taps, uint8_t *kept) {
  const size_t row_bytes = 4 * (size_t)columns, size = (row_bytes + 15) & ~(size_t)15;
  int next = 0;  // The first row that was not narrowed.
  for (int y = 0; y < rows; y++, to += to_stride, row_weights += row_taps) {
    for (; next < row_first[y] + row_taps; next++) {
      narrow(kept + size * (next % row_taps), from + next * from_stride, column_first, column_weights, columns, column_taps);
    }
    for (size_t at = 0; at < row_bytes; at += 16) {
      __m128i pixels = mean_of_rows(kept + at, size, row_first[y], row_weights, row_taps);
      if (row_bytes - at >= 16) {
        _mm_storeu_si128((__m128i *)(to + at), pixels);
      } else {
        memcpy(to + at, &pixels, row_bytes - at);
      }
    }
  }
}
