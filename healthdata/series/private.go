package series

import (
	"fmt"
	"log/slog"
)

// What is measured belongs to a person. A log line or a panic that prints one of these
// types shows how much there is, never what.

func hidden(n int) string { return fmt.Sprintf("%d samples", n) }

// String says how many samples there are, and nothing of them.
func (b *Block) String() string { return hidden(b.Len()) }

// GoString is [Block.String].
func (b *Block) GoString() string { return b.String() }

// LogValue is [Block.String].
func (b *Block) LogValue() slog.Value { return slog.StringValue(b.String()) }

// String says how many samples there are, and nothing of them.
func (h Header) String() string { return hidden(h.N) }

// GoString is [Header.String].
func (h Header) GoString() string { return h.String() }

// LogValue is [Header.String].
func (h Header) LogValue() slog.Value { return slog.StringValue(h.String()) }

// String says that there is a sample, and nothing of it.
func (s Sample) String() string { return hidden(1) }

// GoString is [Sample.String].
func (s Sample) GoString() string { return s.String() }

// LogValue is [Sample.String].
func (s Sample) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String says that there are attributes, and nothing of them.
func (a Attrs) String() string { return "attributes" }

// GoString is [Attrs.String].
func (a Attrs) GoString() string { return a.String() }

// LogValue is [Attrs.String].
func (a Attrs) LogValue() slog.Value { return slog.StringValue(a.String()) }

// String says how many samples there are, and nothing of them.
func (a Acc) String() string { return hidden(a.N) }

// GoString is [Acc.String].
func (a Acc) GoString() string { return a.String() }

// LogValue is [Acc.String].
func (a Acc) LogValue() slog.Value { return slog.StringValue(a.String()) }
