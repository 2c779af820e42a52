// Package relay speaks Jupyter's protocol with the clients of a kernel, and drives GoNB behind it.
// It answers requests that need no Go itself; the others go to GoNB one at a time, and the relay
// amends GoNB's answers. It starts no processes.
//
//	front, err := relay.ReadConnection("/run/kernel-1234.json")   // Jupyter's connection file
//	back := relay.PrivateConnection(dir)                         // a second one, for GoNB
//	err = relay.Run(ctx, relay.Options{Front: front, Back: back, StatusProgram: program, StatusFile: file, Interrupt: interrupt})
package relay
