package critical

import (
	"log/slog"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// String shows nothing of what Snapshot holds.
func (Snapshot) String() string { return rules.Redacted }

// GoString shows nothing of what Snapshot holds.
func (Snapshot) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Snapshot holds.
func (Snapshot) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Loop holds.
func (Loop) String() string { return rules.Redacted }

// GoString shows nothing of what Loop holds.
func (Loop) GoString() string { return rules.Redacted }

// LogValue shows the ids.
func (l Loop) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", l.ID.String()), slog.String("order", l.OrderID.String()))
}

// String shows nothing of what Acknowledgement holds.
func (Acknowledgement) String() string { return rules.Redacted }

// GoString shows nothing of what Acknowledgement holds.
func (Acknowledgement) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Acknowledgement holds.
func (Acknowledgement) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Entry holds.
func (Entry) String() string { return rules.Redacted }

// GoString shows nothing of what Entry holds.
func (Entry) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Entry holds.
func (Entry) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Request holds.
func (Request) String() string { return rules.Redacted }

// GoString shows nothing of what Request holds.
func (Request) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Request holds.
func (Request) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ReadBack holds.
func (ReadBack) String() string { return rules.Redacted }

// GoString shows nothing of what ReadBack holds.
func (ReadBack) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ReadBack holds.
func (ReadBack) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }
