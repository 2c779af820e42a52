// Package lane reads a stream in lanes: each has parts of its own, and its examples in an order of
// its own, which only depends on the seed. A lane can go on at any of its examples, from a Position
// of a few numbers. The package knows neither batches nor ranks.
//
//	l := lane.New(stream, lane.Config{Lanes: 8, Block: 1000, Seed: 1}, lane.Position{Lane: 3})
//	defer l.Close()
//	example, err := l.Next()
//	at := l.Position()
package lane
