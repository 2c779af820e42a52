// Package relay speaks Jupyter's protocol with the clients of a kernel, and drives GoNB behind it.
// Requests that need no Go are answered here; those that do go to GoNB one at a time, and its
// answers are amended. It starts no process.
//
//	front, err := relay.ReadConnection("/run/kernel-1234.json")   // Jupyter's connection file
//	back := relay.PrivateConnection(dir)                         // a second one, for GoNB
//	err = relay.Run(ctx, relay.Options{Front: front, Back: back, StatusProgram: program, StatusFile: file, Interrupt: interrupt})
package relay
