package appointment

import (
	"log/slog"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// String shows nothing of what Address holds.
func (Address) String() string { return rules.Redacted }

// GoString shows nothing of what Address holds.
func (Address) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Address holds.
func (Address) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what AddressInput holds.
func (AddressInput) String() string { return rules.Redacted }

// GoString shows nothing of what AddressInput holds.
func (AddressInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what AddressInput holds.
func (AddressInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }
