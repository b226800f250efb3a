package labresult

import (
	"log/slog"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// String shows nothing of what LabResult holds.
func (Result) String() string { return rules.Redacted }

// GoString shows nothing of what LabResult holds.
func (Result) GoString() string { return rules.Redacted }

// LogValue shows nothing of what LabResult holds.
func (Result) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ResultsMetadata holds.
func (Metadata) String() string { return rules.Redacted }

// GoString shows nothing of what ResultsMetadata holds.
func (Metadata) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ResultsMetadata holds.
func (Metadata) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Report holds.
func (Report) String() string { return rules.Redacted }

// GoString shows nothing of what Report holds.
func (Report) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Report holds.
func (Report) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Code holds.
func (Code) String() string { return rules.Redacted }

// GoString shows nothing of what Code holds.
func (Code) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Code holds.
func (Code) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Coded holds.
func (Coded) String() string { return rules.Redacted }

// GoString shows nothing of what Coded holds.
func (Coded) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Coded holds.
func (Coded) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ParentResult holds.
func (ParentResult) String() string { return rules.Redacted }

// GoString shows nothing of what ParentResult holds.
func (ParentResult) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ParentResult holds.
func (ParentResult) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }
