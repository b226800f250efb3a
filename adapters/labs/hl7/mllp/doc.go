// Package mllp carries messages over TCP in the minimal lower layer protocol of HL7: a message stands between a
// start and an end block, and is answered by another message.
//
//   - [Client] sends a message and waits for its acknowledgement. Without one it sends the same bytes again,
//     after increasing delays.
//   - [Server] passes messages to a [Handler] and sends its answers.
//   - [Reader] reads frames from a stream.
//
// Client and Server use TLS if they have a configuration for it. Frames that are too large, or that have no end, are
// refused; the connection continues with the next one.
package mllp
