// Package network lets the processes of a job find one another over TCP, and keeps others out: both
// sides of each connection prove that they know a key of the job.
//
//	l, err := network.Listen(ctx, local, "0")
//	go l.Serve(key, func(conn net.Conn) { ... })                  // on one rank, which sends l.Addresses() to the others
//	conn, err := network.Dial(ctx, addresses, key)                // on another
//
// A machine may have many addresses, and some of them may lead elsewhere, because another machine
// has the same address on its own network (a container bridge or the loopback). So a process
// announces all of its addresses, the others try them all, and the handshake decides. The
// connections are authenticated when they are made, but not encrypted.
package network
