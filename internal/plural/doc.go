// Package plural writes numbers of things in English. It is for messages, and knows no irregular
// nouns.
//
//	plural.Of(1, "rank")  // 1 rank
//	plural.Of(2, "batch") // 2 batches
package plural
