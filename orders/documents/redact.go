package documents

import (
	"log/slog"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// String shows nothing of what Document holds.
func (Document) String() string { return rules.Redacted }

// GoString shows nothing of what Document holds.
func (Document) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Document holds.
func (Document) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Section holds.
func (Section) String() string { return rules.Redacted }

// GoString shows nothing of what Section holds.
func (Section) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Section holds.
func (Section) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Field holds.
func (Field) String() string { return rules.Redacted }

// GoString shows nothing of what Field holds.
func (Field) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Field holds.
func (Field) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Row holds.
func (Row) String() string { return rules.Redacted }

// GoString shows nothing of what Row holds.
func (Row) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Row holds.
func (Row) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Label holds.
func (Label) String() string { return rules.Redacted }

// GoString shows nothing of what Label holds.
func (Label) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Label holds.
func (Label) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }
