// Package mllp carries messages over TCP in the minimal lower layer protocol of HL7:
// each between a start and an end block, each answered by another message.
//
//   - [Client] sends a message and waits for its acknowledgement; without one it sends
//     the same bytes again, with a growing delay.
//   - [Server] passes messages to a [Handler] and sends its answers.
//   - [Reader] reads frames from a stream.
//
// Both ends speak TLS if they are given a configuration for it. Frames that are too
// large, or that have no end, are refused; the connection continues with the next one.
package mllp
