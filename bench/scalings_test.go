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
		{"a step of a million parameters: one bucket", l.step(8, 30, gradients{parameters: 1e6}), 30 + (6*10+2*7./8*4e6/100)/1000},
		{"a step of 100 million: 12 buckets", l.step(8, 30, gradients{parameters: 100e6}), 30 + (12*6*10+2*7./8*4e8/100)/1000},
		{"gradients travel, the backward pass is short: 4 buckets", ring.overlapped(8, 30, gradients{parameters: 1e6}), 30 + (4*14*10+2*7./8*4e6/100)/1000 - 20},
		{"it is long: the last bucket is left", ring.overlapped(8, 120, gradients{parameters: 1e6}), 120 + (14*10+2*7./8*1048576/100)/1000},
		{"it is long, with a large first layer", ring.overlapped(8, 120, gradients{1e6, 4e5, nil}), 120 + (14*10+2*7./8*4e5/100)/1000},
		{"two large gradients and two buckets of others", ring.overlapped(8, 30, gradients{1e6, 0, []int{3e5, 3e5}}), 30 + (4*14*10+2*7./8*4e6/100)/1000 - 20},
		{"it is long, and all is one small bucket", ring.overlapped(8, 120, gradients{parameters: 1e5}), 120 + (14*10+2*7./8*4e5/100)/1000},
		{"one rank", ring.overlapped(1, 120, gradients{parameters: 1e6}), 120},
		{"several machines, our TCP: overlap", ring.apart(8, 120, gradients{1e6, 4e5, nil}), 127.14},
		{"several machines, MPI: no overlap", l.apart(8, 120, gradients{1e6, 4e5, nil}), 190.06},
		// 13.5 ms of all-reduces at 1 Gbit/s, and 0.6 ms for the two first convolutions: see
		// docs/adr/0026.
		{"the CNN on two nodes", link{Bandwidth: 125, Ring: true}.overlapped(2, 36, networkNamed("cnn").gradients), 36 + 4*18_816/125e3},
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
		Networks: []scalingNetwork{{Name: "cnn", Parameters: 421_642, Batch: 64, Millis: []float64{10, 12}, Apart: []float64{10, 11}}},
		Nodes: &nodeReport{
			Links:    []nodeLink{{link: link{Name: overTCP, Alpha: 10, Bandwidth: 125, Ring: true}, Gigabits: 1}, {link: link{Name: inProgram, Alpha: 10, Bandwidth: 1250}, Gigabits: 10}},
			Networks: []nodeNetwork{{Name: "cnn", Rows: []nodeRow{{Transport: overTCP, One: 30, Two: []float64{50, 40, 35}}, {Transport: overTCP, Overlaps: true, One: 30, Two: []float64{31, 30, 30}}}}},
		}}
	r.carry()
	got := r.markdown()
	for _, want := range []string{
		"| cnn | 2 | 12 ms | 10.4 ms | -13 % | 11.4 ms | -5 % |\n",
		"| cnn | 1 Gbit/s, in a program, our TCP | 50 ms | 43.5 ms | -13 % | 31 ms | 30.6 ms | -1 % |\n",
		"| cnn | 10 Gbit/s, in a program, Open MPI | NaN ms |", // Not measured.
		"| 100 Gb/s InfiniBand, MPI | 10.1 ms (99 %) |", "| 10 Gb/s Ethernet, our TCP | 10.1 ms (99 %) |",
		"cnn: 421642 parameters, 64 inputs for each rank, 10 ms on one rank.",
	} {
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
