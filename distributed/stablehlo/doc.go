// Package stablehlo reads programs in StableHLO's text form, and writes them with changes. It is
// for the programs that go-xla writes: each statement is an operation in MLIR's generic form, on
// lines of its own.
//
//	%2 = "stablehlo.add"(%0, %1) { ... } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
//
// A program in another form is refused.
//
//	m, err := stablehlo.Parse(text)
//	...
//	for _, op := range m.Main().Ops {
//		if op.Name == "stablehlo.dot_general" { ... }
//	}
//	text = m.String()
//
// Source: https://openxla.org/stablehlo/spec and https://mlir.llvm.org/docs/LangRef.
package stablehlo
