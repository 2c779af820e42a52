#ifndef GONBATCH_ONEDNN_CONVOLUTION_H
#define GONBATCH_ONEDNN_CONVOLUTION_H

#include <stddef.h>
#include <stdint.h>

enum { GB_DNN_FORWARD, GB_DNN_BACKWARD_DATA, GB_DNN_BACKWARD_WEIGHTS };

// gb_dnn_convolution_form describes the forward convolution, for its gradients too. It must agree
// with pjrt/convolution.go.
typedef struct {
  int64_t op, batch, height, width, in, out_height, out_width, out, rows, columns;
  int64_t stride[2], dilation[2], before[2], after[2];
  int64_t swapped;  // The weights are [rows, columns, out, in], not [rows, columns, in, out].
  int64_t alone;    // The calling thread computes it alone, beside others.
} gb_dnn_convolution_form;

// gb_dnn_winograd_pays reports whether Winograd's algorithm is faster for a convolution than any
// other.
int gb_dnn_winograd_pays(const gb_dnn_convolution_form *form);

// gb_dnn_winograd_parts returns into how many parts to cut the convolution. See gb_dnn_parts.
int gb_dnn_winograd_parts(const gb_dnn_convolution_form *form);

// gb_dnn_winograd_size returns how many bytes of temporary memory that many parts need.
size_t gb_dnn_winograd_size(const gb_dnn_convolution_form *form, int parts);

// gb_dnn_winograd computes a convolution for which it pays, in parts. Its operands are those of
// gb_dnn_convolution. It returns 0 if it succeeds.
int gb_dnn_winograd(const gb_dnn_convolution_form *form, const float *a, const float *b, float *out, int parts, float *memory);

#endif
