// Package display turns Go values into what a notebook shows of them: a short text and, where the
// value has one, a picture, a table or a page of HTML. The kernel calls it with the last expression
// of a cell; programs may too. It draws nothing itself and knows no plotting library: it recognises
// their values by their methods.
//
//	bundle := display.Of([]Point{{1, 2}, {3, 4}})   // {"text/plain": "X  Y\n1  2\n3  4", "text/html": "<table>..."}
//	display.Result(accuracy, err)                   // the result of the cell; outside of a notebook, a line of output
//
// A type says how it is shown by a method Bundle (Bundler).
package display
