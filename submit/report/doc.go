// Package report defines the submit command's reports in the form that --json prints; docs/json.md
// describes each shape. Scripts and the kernel read these, never the text for people. It knows no
// scheduler and reads no files.
//
//	var run report.Run
//	err := json.Unmarshal(output, &run)
package report
