// Package report holds what the submit command reports of runs, as --json prints it: docs/json.md
// describes each shape. Scripts and the kernel read these, never the text that people get. It knows
// no scheduler and reads no files.
//
//	var run report.Run
//	err := json.Unmarshal(output, &run)
package report
