package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// nodeReport is the result of measureNodes.
type nodeReport struct {
	CPU      string        `json:"cpu"`
	Load     string        `json:"load_average_before"`
	Rounds   int           `json:"rounds"`
	Links    []nodeLink    `json:"links"`
	Networks []nodeNetwork `json:"networks"`
}

// nodeLink is the link between the nodes, as a transport of gonbatch sees it: alpha and bandwidth
// are fitted to its all-reduces.
type nodeLink struct {
	link
	Gigabits int            `json:"gigabits_per_second"`
	World    allReduceWorld `json:"all_reduces"`
}

// nodeNetwork has the steps of a network: on one rank, and on two nodes with a rank each.
type nodeNetwork struct {
	Name    string      `json:"name"`
	Title   string      `json:"title"`
	Batch   int         `json:"batch_per_rank"`
	Steps   int         `json:"steps"`
	Rows    []nodeRow   `json:"rows"`
	Buckets []bucketRow `json:"buckets"`
}

// nodeRow is a contender: its median times of a step on one rank and, for each of nodeGigabits, on
// two.
type nodeRow struct {
	Name      string      `json:"name"`
	Version   string      `json:"version,omitempty"`
	Transport string      `json:"transport,omitempty"` // The name of a nodeLink, of gonbatch.
	Overlaps  bool        `json:"overlaps,omitempty"`
	Zero1     bool        `json:"zero1,omitempty"`
	One       float64     `json:"ms_per_step_on_one"`
	Two       []float64   `json:"ms_per_step_on_two"`
	OneRounds []float64   `json:"rounds_on_one"`
	TwoRounds [][]float64 `json:"rounds_on_two"`
}

// bucketRow is how long gonbatch's step takes on two nodes, over TCP, for each of bucketSizes.
type bucketRow struct {
	Gigabits int         `json:"gigabits_per_second"`
	Millis   []float64   `json:"ms_per_step"`
	Rounds   [][]float64 `json:"rounds"`
}

// nodeGigabits are the speeds of the link. mostNodeRounds keeps the measurement under two hours.
var nodeGigabits = []int{1, 10, 25}

const mostNodeRounds = 3

// bucketSizes are those of the sweep. travellingBytes in package distributed is the default.
var bucketSizes = []int{256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 12 << 20}

// linkTurns are the all-reduces that a link's alpha and bandwidth are fitted to.
var linkTurns = []allReduceTurn{{4, 100, 10}, {16 << 20, 1, 4}}

// measureNodes measures steps of two ranks on two nodes, which a network of a known speed connects.
func measureNodes(ctx context.Context, opts options, out io.Writer) (report nodeReport, err error) {
	report = nodeReport{CPU: cpuModel(), Load: loadAverage(), Rounds: min(opts.rounds, mostNodeRounds)}
	available, err := cores()
	if err != nil {
		return report, err
	}
	if len(available) < 2 {
		return report, fmt.Errorf("%s available, and two ranks that need one each: use a machine with more", plural.Of(len(available), "core"))
	}
	nodes, err := newTwoNodes(ctx)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, nodes.close()) }()
	m := nodeMeasure{nodes: nodes, cores: available[:2], out: out}
	if err := report.measureLinks(ctx, m); err != nil {
		return report, err
	}
	for _, n := range networks {
		if opts.network != "" && opts.network != n.name {
			continue
		}
		own := n.of(opts)
		own.rounds = report.Rounds
		found, err := m.network(ctx, n, own)
		if err != nil {
			return report, err
		}
		report.Networks = append(report.Networks, found)
	}
	return report, nil
}

// measureLinks fills in what gonbatch's two transports make of the link.
func (r *nodeReport) measureLinks(ctx context.Context, m nodeMeasure) error {
	program, err := build(ctx, "./bench/allreduce", "bench-allreduce")
	if err != nil {
		return err
	}
	for _, gigabits := range nodeGigabits {
		if err := m.nodes.shape(ctx, gigabits); err != nil {
			return err
		}
		for _, t := range []struct {
			name  string
			start starter
			ring  bool
		}{{overTCP, m.nodes.torchrun(program), true}, {inProgram, m.nodes.mpi(program), false}} {
			l := nodeLink{Gigabits: gigabits, World: allReduceWorld{Ranks: 2}}
			c := contender{name: t.name, start: t.start}
			if err := l.World.measure(ctx, []contender{c}, linkTurns, m.cores, r.Rounds, m.out); err != nil {
				return fmt.Errorf("%d Gbit/s: %w", gigabits, err)
			}
			if l.link, err = fit([]allReduceWorld{l.World}, t.name, t.ring); err != nil {
				return err
			}
			r.Links = append(r.Links, l)
		}
	}
	return nil
}

// nodeMeasure measures steps on two nodes.
type nodeMeasure struct {
	nodes *twoNodes
	cores []int
	out   io.Writer
}

// nodeContender is a contender on two nodes, and on one core of one of them.
type nodeContender struct {
	contender
	transport string
	overlaps  bool
	alone     int // The contender with which it shares the measurement on one rank.
}

// contenders returns those of a network. The first one is gonbatch over TCP, with overlap.
func (m nodeMeasure) contenders(ctx context.Context, n network, cache string) ([]nodeContender, error) {
	overRing, err := contenders(ctx, n, func(program string) starter { return m.nodes.torchrun(program) }, m.nodes.torchrun)
	if err != nil {
		return nil, err
	}
	overMPI, err := contenders(ctx, n, m.nodes.mpi, m.nodes.torchrun)
	if err != nil {
		return nil, err
	}
	// The first step isn't measured: its program is compiled once.
	cached := rundir.EnvCompileCache + "=" + cache
	ours := func(c contender, name, transport, overlap string) nodeContender {
		c = c.environ(cached, rundir.EnvOverlap+"="+overlap)
		c.name = name
		return nodeContender{contender: c, transport: transport, overlaps: overlap == rundir.OverlapOn}
	}
	all := []nodeContender{
		ours(overRing[0], "gonbatch, our TCP, overlap", overTCP, rundir.OverlapOn),
		ours(overRing[0], "gonbatch, our TCP", overTCP, rundir.OverlapOff),
		ours(overMPI[0], "gonbatch, Open MPI, overlap", inProgram, rundir.OverlapOn),
		ours(overMPI[0], "gonbatch, Open MPI", inProgram, rundir.OverlapOff),
		{contender: overRing[1], alone: 4},
		{contender: overRing[2], alone: 5},
	}
	if n.zero1 {
		all = append(all,
			ours(overRing[0].dividing(), "gonbatch, our TCP, zero1", overTCP, rundir.OverlapOff),
			ours(overMPI[0].dividing(), "gonbatch, Open MPI, zero1", inProgram, rundir.OverlapOff))
	}
	return all, nil
}

// network makes the contenders take turns on a network.
func (m nodeMeasure) network(ctx context.Context, n network, opts options) (_ nodeNetwork, err error) {
	found := nodeNetwork{Name: n.name, Title: n.title, Batch: opts.batch, Steps: opts.steps}
	cache, err := os.MkdirTemp("", "bench-nodes-cache-")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	all, err := m.contenders(ctx, n, cache)
	if err != nil {
		return found, err
	}
	for _, c := range all {
		found.Rows = append(found.Rows, nodeRow{Name: c.name, Transport: c.transport, Overlaps: c.overlaps, Zero1: c.zero1, TwoRounds: make([][]float64, len(nodeGigabits))})
	}
	for _, gigabits := range nodeGigabits {
		found.Buckets = append(found.Buckets, bucketRow{Gigabits: gigabits, Rounds: make([][]float64, len(bucketSizes))})
	}
	for round := range opts.rounds {
		fmt.Fprintf(m.out, "%s, round %d\n", n.name, round+1)
		if err := m.round(ctx, &found, all, opts); err != nil {
			return found, err
		}
	}
	found.summarize(all)
	return found, nil
}

// round lets each contender take its turns.
func (m nodeMeasure) round(ctx context.Context, found *nodeNetwork, all []nodeContender, opts options) error {
	for i, c := range all {
		if c.alone != i {
			continue
		}
		millis, version, err := m.measure(ctx, c.contender, 1, opts)
		if err != nil {
			return err
		}
		found.Rows[i].OneRounds, found.Rows[i].Version = append(found.Rows[i].OneRounds, millis), version
	}
	for l, gigabits := range nodeGigabits {
		if err := m.nodes.shape(ctx, gigabits); err != nil {
			return err
		}
		fmt.Fprintf(m.out, "at %d Gbit/s:\n", gigabits)
		for i, c := range all {
			millis, version, err := m.measure(ctx, c.contender, 2, opts)
			if err != nil {
				return err
			}
			row := &found.Rows[i]
			row.TwoRounds[l], row.Version = append(row.TwoRounds[l], millis), version
		}
		for b, bytes := range bucketSizes {
			c := all[0].with(fmt.Sprint("--bucket=", bytes))
			c.name += ", buckets of " + size(bytes)
			millis, _, err := m.measure(ctx, c, 2, opts)
			if err != nil {
				return err
			}
			rounds := found.Buckets[l].Rounds
			rounds[b] = append(rounds[b], millis)
		}
	}
	return nil
}

// measure measures a contender once.
func (m nodeMeasure) measure(ctx context.Context, c contender, ranks int, opts options) (millis float64, version string, err error) {
	found, err := c.measure(ctx, m.cores[:ranks], opts)
	if err != nil {
		return 0, "", err
	}
	fmt.Fprintf(m.out, "  %-44s %s %9.2f ms\n", c.name, plural.Of(ranks, "rank"), found.MillisPerStep)
	return found.MillisPerStep, found.Version, nil
}

// summarize fills in the medians.
func (n *nodeNetwork) summarize(all []nodeContender) {
	same := func(x float64) float64 { return x }
	for i := range n.Rows {
		row := &n.Rows[i]
		row.OneRounds = n.Rows[all[i].alone].OneRounds
		row.One, row.Two = median(row.OneRounds, same), nil
		for _, rounds := range row.TwoRounds {
			row.Two = append(row.Two, median(rounds, same))
		}
	}
	for i := range n.Buckets {
		n.Buckets[i].Millis = nil
		for _, rounds := range n.Buckets[i].Rounds {
			n.Buckets[i].Millis = append(n.Buckets[i].Millis, median(rounds, same))
		}
	}
}
