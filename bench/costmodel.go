package main

import (
	"fmt"
	"math"
)

// link is a connection between ranks, by the alpha-beta model: a message of m bytes takes alpha +
// m/bandwidth.
type link struct {
	Name      string  `json:"name"`
	Alpha     float64 `json:"alpha_us"`
	Bandwidth float64 `json:"bandwidth_bytes_per_us"`
	// Ring is set if all-reduces of more than 8 KiB use the ring algorithm, as package tcp does.
	// Otherwise they use the fastest of the algorithms that MPI libraries have.
	Ring bool `json:"ring"`
}

// The links that the model is carried to. They are assumptions: what such networks have when
// nothing else uses them.
var assumedLinks = []link{
	{Name: "10 Gb/s Ethernet, our TCP", Alpha: 30, Bandwidth: 1250, Ring: true},
	{Name: "10 Gb/s Ethernet, MPI", Alpha: 30, Bandwidth: 1250},
	{Name: "100 Gb/s InfiniBand, MPI", Alpha: 2, Bandwidth: 12500},
}

// transfer is the time in which each rank sends and receives all parts of a sum but its own, twice:
// no algorithm that sums on the ranks needs less (Patarasuk and Yuan 2009).
func (l link) transfer(ranks int, bytes float64) float64 {
	return 2 * float64(ranks-1) / float64(ranks) * bytes / l.Bandwidth
}

// ring returns the time of the ring algorithm, in microseconds: 2(p-1) messages, one after another.
func (l link) ring(ranks int, bytes float64) float64 {
	return 2*float64(ranks-1)*l.Alpha + l.transfer(ranks, bytes)
}

// doubling returns the time of recursive doubling, in microseconds: each of log2(p) messages has
// everything (Thakur et al. 2005).
func (l link) doubling(ranks int, bytes float64) float64 {
	return levels(ranks) * (l.Alpha + bytes/l.Bandwidth)
}

// halving returns the time of recursive halving and doubling, in microseconds: 2 log2(p) messages
// of parts (Thakur et al. 2005).
func (l link) halving(ranks int, bytes float64) float64 {
	return 2*levels(ranks)*l.Alpha + l.transfer(ranks, bytes)
}

// levels returns the height of a binary tree of the ranks.
func levels(ranks int) float64 { return math.Ceil(math.Log2(float64(ranks))) }

// smallSum is the size up to which package tcp uses recursive doubling.
const smallSum = 8 << 10

// allReduce returns the time of an all-reduce, in microseconds.
func (l link) allReduce(ranks int, bytes float64) float64 {
	switch {
	case ranks == 1:
		return 0
	case l.Ring && bytes <= smallSum:
		return l.doubling(ranks, bytes)
	case l.Ring:
		return l.ring(ranks, bytes)
	}
	return min(l.ring(ranks, bytes), l.doubling(ranks, bytes), l.halving(ranks, bytes))
}

// fit returns the link of a contender's measured all-reduces: alpha from the smallest size, and the
// bandwidth from the largest size that all worlds have. Both are medians over the worlds.
func fit(worlds []allReduceWorld, contender string, ring bool) (link, error) {
	l := link{Name: contender, Ring: ring}
	largest := 0
	for _, w := range worlds {
		if last := w.Bytes[len(w.Bytes)-1]; largest == 0 || last < largest {
			largest = last
		}
	}
	var alphas, bandwidths []float64
	for _, w := range worlds {
		micros := w.of(contender).Micros
		if len(micros) != len(w.Bytes) {
			return l, fmt.Errorf("%d ranks: no all-reduces %s: measure them again", w.Ranks, contender)
		}
		alphas = append(alphas, micros[0]/levels(w.Ranks))
		for i, bytes := range w.Bytes {
			if bytes == largest {
				bandwidths = append(bandwidths, link{Bandwidth: 1}.transfer(w.Ranks, float64(bytes))/micros[i])
			}
		}
	}
	if len(alphas) == 0 || len(bandwidths) != len(alphas) {
		return l, fmt.Errorf("not all worlds have all-reduces of %s %s: measure them again", size(largest), contender)
	}
	same := func(x float64) float64 { return x }
	l.Alpha, l.Bandwidth = median(alphas, same), median(bandwidths, same)
	return l, nil
}

// The sizes of the buckets in which gradients are summed: see stoppedBytes and travellingBytes in
// package distributed.
const stoppedBytes, travellingBytes = 32 << 20, 1 << 20

// backwardShare is which part of computing a step comes after its first bucket is complete: the
// backward pass usually takes twice as long as the forward pass.
const backwardShare = 2. / 3

// gradients are what the ranks of a network sum in a step: float32.
type gradients struct {
	parameters int
	// last is how many bytes the bucket has, at least, that is complete last: the gradient of a
	// large first layer travels in one piece. 0 is a whole bucket.
	last int
	// alone are the elements of each gradient of 1 MiB or more, which is summed by itself.
	alone []int
}

func (g gradients) bytes() float64 { return 4 * float64(g.parameters) }

// sum returns how long the ranks take for all gradients, one bucket after another, in microseconds.
func (l link) sum(ranks int, g gradients, bucket float64) (micros float64) {
	rest := g.bytes()
	for _, elements := range g.alone {
		bytes := 4 * float64(elements)
		micros, rest = micros+l.allReduce(ranks, bytes), rest-bytes
	}
	if n := math.Ceil(rest / bucket); n > 0 {
		micros += n * l.allReduce(ranks, rest/n)
	}
	return micros
}

// step returns the time of a training step, in milliseconds, in which nothing is computed during
// the all-reduces, as on the CPUs of one machine: computing takes as long as on one rank.
func (l link) step(ranks int, computeMillis float64, g gradients) float64 {
	return computeMillis + l.sum(ranks, g, stoppedBytes)/1000
}

// overlapped returns the time of a training step, in milliseconds, whose gradients travel while
// others are computed. What is left is the last bucket, or what the backward pass is too short for.
func (l link) overlapped(ranks int, computeMillis float64, g gradients) float64 {
	last := float64(g.last)
	if g.last == 0 {
		last = min(travellingBytes, g.bytes())
	}
	left := l.sum(ranks, g, travellingBytes)/1000 - backwardShare*computeMillis
	return computeMillis + max(l.allReduce(ranks, last)/1000, left)
}

// apart returns the time of a training step, in milliseconds, of ranks on several machines, with
// what is on by itself there if each rank has one core: overlap over TCP, but not over MPI.
func (l link) apart(ranks int, computeMillis float64, g gradients) float64 {
	if l.Ring {
		return l.overlapped(ranks, computeMillis, g)
	}
	return l.step(ranks, computeMillis, g)
}
