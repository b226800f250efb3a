// Package er7 reads and writes the text form of HL7 v2 messages: segments on lines,
// fields, repetitions, components and subcomponents between delimiters.
//
// It is an encoding, not a dictionary: it knows no segment but the header, so every
// segment of every version and every site is kept, and a message that was read is
// written back byte for byte. Text is decoded (escape sequences, character set) only
// when it is asked for.
//
//	m, err := er7.Parse(raw, nil)
//	name := m.Segment("PID").Field(5).Component(2).Text()
//
// Names to know:
//
//   - [Parse] reads one [Message], [ParseBatch] a file of them.
//   - [Segment] and [Part] lead to a place: what is not there is empty, never nil.
//   - [Builder] writes a new message, with everything escaped.
//   - [Part.Stamp], [Part.Coded], [Part.Person] and their like read the data types that
//     orders and results are made of.
//   - [SyntaxError] says where a message is malformed, and never what stood there.
package er7

// Files in the order of reading: each uses those before it.
//
//	syntax_error.go charset.go delimiter.go line.go part.go embedded.go datatype.go stamp.go message.go
//	escape.go build.go batch.go
