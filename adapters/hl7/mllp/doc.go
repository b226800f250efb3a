// Package mllp carries messages over TCP in the minimal lower layer protocol of HL7:
// each between a start and an end block, each answered by another message.
//
//   - [Client] sends a message and waits for its acknowledgement; if none comes it
//     sends the same bytes again, later and later.
//   - [Server] hands what comes in to a [Handler] and sends back what it answers.
//   - [Reader] finds the frames in a stream, whatever stands around them.
//
// Both ends speak TLS if they are given a configuration for it. Frames that are too
// large, or that have no end, are refused; the connection goes on with the next one.
package mllp
