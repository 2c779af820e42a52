// Package wire encodes, signs and checks the messages of Jupyter's protocol. It knows nothing about
// sockets or the meaning of messages.
//
//	codec, err := wire.NewCodec("hmac-sha256", key)
//	request, err := codec.Decode(frames)                   // refused unless the signature is right and was not seen before
//	reply, err := request.Reply("kernel_info_reply", content)  // goes back to the identities that asked
//	frames = codec.Encode(reply)
package wire
