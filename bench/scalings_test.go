package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFit: all-reduces that follow the model give its alpha and bandwidth back.
func TestFit(t *testing.T) {
	for _, want := range []link{{Alpha: 2, Bandwidth: 3000}, {Alpha: 50, Bandwidth: 1000, Ring: true}} {
		var worlds []allReduceWorld
		for ranks := 2; ranks <= 4; ranks++ {
			w := allReduceWorld{Ranks: ranks, Bytes: []int{4, 1 << 20, 64 << 20}}
			if ranks == 2 {
				w.Bytes = append(w.Bytes, 256<<20)
			}
			row := allReduceRow{Name: "X"}
			for _, bytes := range w.Bytes {
				row.Micros = append(row.Micros, want.allReduce(ranks, float64(bytes)))
			}
			w.Rows = append(w.Rows, row)
			worlds = append(worlds, w)
		}
		got, err := fit(worlds, "X", want.Ring)
		if err != nil || math.Abs(got.Alpha/want.Alpha-1) > 0.02 || math.Abs(got.Bandwidth/want.Bandwidth-1) > 0.02 {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if _, err := fit(worlds, "Y", want.Ring); err == nil || !strings.Contains(err.Error(), "no all-reduces Y") {
			t.Errorf("a contender that is missing: %v", err)
		}
	}
}

// TestModel: the model's values, computed by hand.
func TestModel(t *testing.T) {
	l := link{Alpha: 10, Bandwidth: 100}
	ring := link{Alpha: 10, Bandwidth: 100, Ring: true}
	tests := []struct {
		name      string
		got, want float64
	}{
		{"one rank", l.allReduce(1, 1e6), 0},
		{"little data, 8 ranks: 3 messages", l.allReduce(8, 100), 3 * (10 + 1)},
		{"little data over TCP: 3 messages", ring.allReduce(8, 100), 3 * (10 + 1)},
		{"much data in a ring: 14 messages", ring.allReduce(8, 1e6), 14*10 + 2*7./8*1e6/100},
		{"much data, 8 ranks: 6 messages of parts", l.allReduce(8, 1e6), 6*10 + 2*7./8*1e6/100},
		{"much data, 2 ranks: one message", l.allReduce(2, 1e6), 10 + 1e6/100},
		{"a step of a million parameters", l.step(8, 30, 1e6), 30 + (6*10+2*7./8*4e6/100)/1000},
	}
	for _, tt := range tests {
		if math.Abs(tt.got-tt.want) > 1e-9*tt.want {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// TestScalingReport: the model is compared with the measured steps, carried on, and drawn.
func TestScalingReport(t *testing.T) {
	r := scalingReport{CPU: "A CPU", Load: "0.02", Rounds: 2, Here: link{Name: inProgram, Alpha: 1, Bandwidth: 4000}, Assumed: assumedLinks,
		Networks: []scalingNetwork{{Name: "cnn", Parameters: 1_000_000, Batch: 64, Millis: []float64{10, 12}}}}
	r.carry()
	got := r.markdown()
	for _, want := range []string{"| cnn | 2 | 12 ms | 11 ms | -8 % |\n", "| 100 Gb/s InfiniBand, MPI | 10.3 ms (97 %) |", "cnn: 1000000 parameters, 64 inputs for each rank, 10 ms on one rank."} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	path := filepath.Join(t.TempDir(), "scaling.svg")
	if err := r.draw(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "<svg") || !strings.Contains(string(text), "cnn, 10 Gb/s Ethernet, MPI") || !strings.Contains(string(text), "1024") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestScalingNeedsAllReduces: without measured all-reduces, the error says how to get them.
func TestScalingNeedsAllReduces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "allreduce.json")
	var r scalingReport
	if err := r.fit(path); err == nil || !strings.Contains(err.Error(), "go run ./bench -only allreduce") {
		t.Errorf("no file: %v", err)
	}
	w := allReduceWorld{Ranks: 2, Bytes: []int{4, 1 << 20}, Rows: []allReduceRow{{Name: inProgram, Micros: []float64{2, 500}}, {Name: overTCP, Micros: []float64{100, 900}}}}
	text, err := json.Marshal(allReduceReport{Worlds: []allReduceWorld{w}})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.fit(path); err != nil || r.Here.Alpha != 2 || r.Ring.Alpha != 100 {
		t.Errorf("%+v, %+v, %v", r.Here, r.Ring, err)
	}
}
