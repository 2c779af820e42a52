#ifndef GONBATCH_SCALE_VECTOR_H
#define GONBATCH_SCALE_VECTOR_H

#include <stddef.h>
#include <stdint.h>

// gb_scale_bilinear writes an opaque RGBA image of columns x rows pixels. Each is the mean of
// neighbors: column_taps of them from column_first on, with the weights [columns][column_taps],
// which sum up to 2^13; and so for rows. The number of taps is even. kept has room for row_taps
// rows of the new width, each rounded up to 16 bytes.
void gb_scale_bilinear(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t from_stride,
                       const int32_t *column_first, const int16_t *column_weights, int columns, int column_taps,
                       const int32_t *row_first, const int16_t *row_weights, int rows, int row_taps, uint8_t *kept);

#endif
