package onednn

// #include "library.h"
import "C"

import "unsafe"

// Convolution returns the C function that computes a convolution of float32, or one of its
// gradients. Its C type is
//
//	int (*)(const int64_t *form, int64_t length, const float *a, const float *b, float *out,
//	        char *error, size_t error_size)
//
// The form is that of pjrt's convolutions. The function returns 0, or 1 and a zero-terminated text
// in error. If out is NULL, it only prepares, and returns 1 if XLA should compute the convolution.
func (l *Library) Convolution() unsafe.Pointer { return C.gb_dnn_convolution }

// Product returns the C function of the same type that multiplies two matrices. The form is that of
// pjrt's products.
func (l *Library) Product() unsafe.Pointer { return C.gb_dnn_product }

// Columns returns the C function of the same type that adds up the rows of a matrix. The form is
// that of pjrt's column sums; b is not used.
func (l *Library) Columns() unsafe.Pointer { return C.gb_dnn_columns }

// Adam returns the C function that computes an update of Adam or AdamW. Its C type is
//
//	void (*)(const struct gb_adam_update *)
//
// with the struct of pjrt/kernels.h.
func (l *Library) Adam() unsafe.Pointer { return C.gb_dnn_adam }

// TrainedProduct returns the C function that computes an update by Adam or AdamW whose gradient is
// a product. Its C type is
//
//	int (*)(const int64_t *form, int64_t length, const float *a, const float *b,
//	        const struct gb_adam_update *, char *error, size_t error_size)
//
// with a form of Product, and a gradient that is not used. It returns nil if the library doesn't
// use OpenMP: only then does our team compute the parts of a product.
func (l *Library) TrainedProduct() unsafe.Pointer {
	if C.gb_dnn.set_threads == nil {
		return nil
	}
	return C.gb_dnn_trained_product
}
