package hl7

import "log/slog"

// hidden is what values of patients print as.
const hidden = "[redacted]"

// String shows nothing of what Insurance holds.
func (Insurance) String() string { return hidden }

// GoString shows nothing of what Insurance holds.
func (Insurance) GoString() string { return hidden }

// LogValue shows nothing of what Insurance holds.
func (Insurance) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Document holds.
func (Document) String() string { return hidden }

// GoString shows nothing of what Document holds.
func (Document) GoString() string { return hidden }

// LogValue shows nothing of what Document holds.
func (Document) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Incoming holds.
func (Incoming) String() string { return hidden }

// GoString shows nothing of what Incoming holds.
func (Incoming) GoString() string { return hidden }

// LogValue shows nothing of what Incoming holds.
func (Incoming) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what TestReport holds.
func (TestReport) String() string { return hidden }

// GoString shows nothing of what TestReport holds.
func (TestReport) GoString() string { return hidden }

// LogValue shows nothing of what TestReport holds.
func (TestReport) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Observation holds.
func (Observation) String() string { return hidden }

// GoString shows nothing of what Observation holds.
func (Observation) GoString() string { return hidden }

// LogValue shows nothing of what Observation holds.
func (Observation) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Specimen holds.
func (Specimen) String() string { return hidden }

// GoString shows nothing of what Specimen holds.
func (Specimen) GoString() string { return hidden }

// LogValue shows nothing of what Specimen holds.
func (Specimen) LogValue() slog.Value { return slog.StringValue(hidden) }
