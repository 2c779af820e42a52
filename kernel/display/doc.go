// Package display turns Go values into what a notebook shows for them: a short text and, if the
// value has one, a picture, a table or an HTML page. The kernel calls it with the last expression
// of a cell; programs may call it too. It draws nothing itself and imports no plotting library: it
// recognizes the values of such libraries by their methods.
//
//	bundle := display.Of([]Point{{1, 2}, {3, 4}})   // {"text/plain": "X  Y\n1  2\n3  4", "text/html": "<table>..."}
//	display.Result(accuracy, err)                   // the result of the cell; outside a notebook, a line of output
//
// A type with a method Bundle defines how it is shown (see [Bundler]).
package display
