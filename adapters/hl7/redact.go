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

// String shows nothing of what Patient holds.
func (Patient) String() string { return hidden }

// GoString shows nothing of what Patient holds.
func (Patient) GoString() string { return hidden }

// LogValue shows nothing of what Patient holds.
func (Patient) LogValue() slog.Value { return slog.StringValue(hidden) }

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

// String shows nothing of what Dossier holds.
func (Dossier) String() string { return hidden }

// GoString shows nothing of what Dossier holds.
func (Dossier) GoString() string { return hidden }

// LogValue shows nothing of what Dossier holds.
func (Dossier) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Delivery holds.
func (Delivery) String() string { return hidden }

// GoString shows nothing of what Delivery holds.
func (Delivery) GoString() string { return hidden }

// LogValue shows nothing of what Delivery holds.
func (Delivery) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Entry holds.
func (Entry) String() string { return hidden }

// GoString shows nothing of what Entry holds.
func (Entry) GoString() string { return hidden }

// LogValue shows nothing of what Entry holds.
func (Entry) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what State holds.
func (State) String() string { return hidden }

// GoString shows nothing of what State holds.
func (State) GoString() string { return hidden }

// LogValue shows nothing of what State holds.
func (State) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what HeldTest holds.
func (HeldTest) String() string { return hidden }

// GoString shows nothing of what HeldTest holds.
func (HeldTest) GoString() string { return hidden }

// LogValue shows nothing of what HeldTest holds.
func (HeldTest) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what HeldResult holds.
func (HeldResult) String() string { return hidden }

// GoString shows nothing of what HeldResult holds.
func (HeldResult) GoString() string { return hidden }

// LogValue shows nothing of what HeldResult holds.
func (HeldResult) LogValue() slog.Value { return slog.StringValue(hidden) }

// String shows nothing of what Specimen holds.
func (Specimen) String() string { return hidden }

// GoString shows nothing of what Specimen holds.
func (Specimen) GoString() string { return hidden }

// LogValue shows nothing of what Specimen holds.
func (Specimen) LogValue() slog.Value { return slog.StringValue(hidden) }
