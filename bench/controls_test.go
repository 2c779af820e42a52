package main

import (
	"strings"
	"testing"
)

// TestControl starts a few ranks.
func TestControl(t *testing.T) {
	t.Chdir("..")
	program, err := build(t.Context(), "./bench/control", "bench-control")
	if err != nil {
		t.Fatal(err)
	}
	const ranks = 20
	c, err := startMany(t.Context(), program, ranks)
	if err != nil {
		t.Fatal(err)
	}
	if !(0 < c.Began && c.Began <= c.Joined && c.Joined <= c.Watched) || c.Messages < ranks || c.MB < 1 || !(0 < c.Reported && c.Reported <= c.Ended) {
		t.Errorf("%+v", c)
	}
}

func TestControlTable(t *testing.T) {
	row := controlRow{Ranks: 1024}
	for _, x := range []float64{1, 3, 2} {
		row.Rounds = append(row.Rounds, control{Began: x, Joined: 2 * x, Watched: 3 * x, StartCPU: x / 4, CPU: 5 * x, Messages: 1000 * x, MB: 30 * x, Reported: x / 10, Ended: x / 5})
	}
	row.fill()
	got := controlReport{CPU: "A CPU", Cores: 4, Load: "0.02", Rounds: 3, Rows: []controlRow{row}}.markdown()
	want := "| 1024 | 2.00 s | 4.00 s | 6.00 s | 0.50 s | 10.0 % | 2000 | 60 | 0.20 s | 0.40 s |\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("table:\n%s\nwant at its end:\n%s", got, want)
	}
}
