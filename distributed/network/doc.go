// Package network lets the processes of a job find one another over TCP, and keeps others out: both
// sides of each connection prove that they know a key of the job.
//
//	l, err := network.Listen(ctx, local, "0")
//	go l.Serve(key, func(conn net.Conn) { ... })                  // on one rank, with l.Addresses() told to the others
//	conn, err := network.Dial(ctx, addresses, key)                // on another
//
// A machine may have many addresses, of which some lead elsewhere: another machine has the same one
// on a network of its own (containers' bridges, the loopback). So all are told and tried, and the
// handshake decides. The connections are authenticated as they are made, and not encrypted.
package network
