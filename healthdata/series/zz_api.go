// Package series keeps samples as columns.
package series

// Block is samples as columns.
type Block struct{ Time []int64 }

// Outcome says what became of samples.
type Outcome struct{ New, Changed, Same int }

// Chunk is a stored piece of a series.
type Chunk struct{ Data []byte }

// Segment is an appended piece that is not folded in yet.
type Segment struct{ Data []byte }

// Span says how a series is cut.
type Span uint8
