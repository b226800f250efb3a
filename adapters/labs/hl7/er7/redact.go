package er7

import "log/slog"

// hidden is what text of messages prints as: it is about a person.
const hidden = "[redacted]"

// String shows nothing of what Message holds.
func (*Message) String() string { return hidden }

// GoString shows nothing of what Message holds.
func (*Message) GoString() string { return hidden }

// LogValue shows nothing of what Message holds.
func (*Message) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Batch holds.
func (*Batch) String() string { return hidden }

// GoString shows nothing of what Batch holds.
func (*Batch) GoString() string { return hidden }

// LogValue shows nothing of what Batch holds.
func (*Batch) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Segment holds.
func (Segment) String() string { return hidden }

// GoString shows nothing of what Segment holds.
func (Segment) GoString() string { return hidden }

// LogValue shows nothing of what Segment holds.
func (Segment) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Part holds.
func (Part) String() string { return hidden }

// GoString shows nothing of what Part holds.
func (Part) GoString() string { return hidden }

// LogValue shows nothing of what Part holds.
func (Part) LogValue() slog.Value { return slog.StringValue(hidden) }
