package main

import "testing"

func TestCheckTable(t *testing.T) {
	report := checkReport{CPU: "A CPU", LoadAverage: "0.02", Rounds: 5, Notebook: "tutorial.ipynb", Rows: []submitRow{
		{Name: "the first time", Seconds: 4.5, Limit: 6}, {Name: "unchanged", Seconds: 0.05, Limit: 1.5},
	}}
	want := `# Check

The time of ` + "`submit check`" + ` of a notebook by GoMLX's authors, tutorial.ipynb, as the median of 5.
Its modules are downloaded and compiled. The first time, submit also has to find out which modules
the notebook needs.
A CPU, load average 0.02.

| | seconds | limit |
|---|--:|--:|
| the first time | 4.50 | 6.0 |
| unchanged | 0.05 | 1.5 |
`
	if got := report.markdown(); got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}
