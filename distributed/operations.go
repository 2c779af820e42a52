package distributed

import "gonbatch/distributed/pjrt"

// Operation is a part of a compiled program that other code than XLA's ran: a convolution or a
// product by oneDNN, a collective, or random bits.
type Operation = pjrt.Operation

// OperationKind is the kind of an operation.
type OperationKind = pjrt.OperationKind

// The kinds of operations.
const (
	Convolution     = pjrt.Convolution
	Product         = pjrt.Product
	RandomBits      = pjrt.RandomBits
	WholeCollective = pjrt.WholeCollective
	StartOfSum      = pjrt.StartOfSum
	WaitForSum      = pjrt.WaitForSum
	TravellingSum   = pjrt.TravellingSum
)

// Limits of a recording. An operation takes 176 bytes, and more as text, which rank 0 may have of
// all ranks.
const (
	maxOperations   = 1 << 16
	operationsOfAll = 1 << 20
	minOperations   = 1 << 10
)

// RecordOperations begins to record the operations of this rank's programs. The recording has the
// first ones: 65,536, or fewer with more than 16 ranks. There are none on GPUs, where XLA runs all
// of a program.
func (w *World) RecordOperations() {
	pjrt.StartTrace(max(minOperations, min(maxOperations, operationsOfAll/w.Size())))
}

// RecordedOperations ends the recording. It returns the operations, and how many more there were.
func (w *World) RecordedOperations() (all []Operation, lost int) { return pjrt.StopTrace() }
