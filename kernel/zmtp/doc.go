// Package zmtp is the listening side of ZeroMQ's protocol (ZMTP 3.0, without encryption), as far as
// a Jupyter kernel needs it: a Router for requests and heartbeats, a Pub for published messages. It
// never connects to a peer, and knows nothing about Jupyter.
//
// Connections don't affect one another. Each has a deadline for its handshake and for each message
// that it has begun, a limit on what it sends, and a queue of bounded size for what it is sent: a
// client that is silent, malformed or stopped costs the others nothing.
//
//	requests, err := zmtp.ListenRouter("tcp://127.0.0.1:5555", zmtp.Options{})
//	frames, err := requests.Receive(ctx)  // the first frame is the client's identity
//	err = requests.Send(frames)           // goes back to that client
//	err = requests.Close()                // after the clients have read what was sent
package zmtp
