// Package er7 reads and writes the text form of HL7 v2 messages: segments on lines, with fields, repetitions,
// components and subcomponents between delimiters.
//
// It knows the encoding, but no segment except the header, so it keeps every segment of every version and site, and
// writes a message back byte for byte. Text is decoded (escape sequences, character set) only on request.
//
//	m, err := er7.Parse(raw, nil)
//	name := m.Segment("PID").Field(5).Component(2).Text()
//
// Names to know:
//
//   - [Parse] reads one [Message], [ParseBatch] a file of them.
//   - [Segment] and [Part] give access to a position: an absent part is empty, never nil.
//   - [Builder] writes a new message, with everything escaped.
//   - [Part.Stamp], [Part.Coded], [Part.Person] and similar methods read the data types of orders and results.
//   - [SyntaxError] says where a message is malformed, and never contains text of it.
package er7

// Files in the order of reading: each uses those before it.
//
//	syntax_error.go charset.go delimiter.go line.go part.go embedded.go datatype.go stamp.go message.go
//	escape.go build.go batch.go
