// Package load builds batches ahead of their use, several at once, and hands them out in order. It
// knows neither what a batch is nor where it goes; package distributed puts batches on devices.
//
//	queue := load.NewQueue(load.Options[batch]{Workers: 2, Ahead: 4}, next)
//	defer queue.Close()
//	for batch, err := range queue.All() { ... } // Meanwhile the next four are built.
//
// Batch and EpochBatch call a dataset. Their errors name the example that can't be loaded.
package load
