#ifndef GONBATCH_ONEDNN_PRODUCT_H
#define GONBATCH_ONEDNN_PRODUCT_H

#include <stdint.h>

// gb_dnn_product_form describes the product of an m x k and a k x n matrix, or of several pairs of
// them. It must agree with pjrt/product.go.
typedef struct {
  int64_t pairs, m, n, k;
  int64_t transposed_a, transposed_b;  // In memory: k x m, n x k.
  int64_t alone;                       // As in a convolution.
} gb_dnn_product_form;

// Columns of b whose rows are a multiple of some KiB apart lie in few sets of the cache. In a copy,
// the rows are GB_DNN_SPARE elements further apart.
enum { GB_DNN_SPARE = 16 };

static inline int64_t gb_dnn_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
