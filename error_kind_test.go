package healthlab_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

var kinds = map[healthlab.ErrorKind]string{
	healthlab.Unknown:         "unknown fault",
	healthlab.Invalid:         "invalid",
	healthlab.NotFound:        "not found",
	healthlab.Conflict:        "conflict",
	healthlab.Precondition:    "precondition failed",
	healthlab.Unauthenticated: "unauthenticated",
	healthlab.Forbidden:       "forbidden",
	healthlab.Exhausted:       "exhausted",
	healthlab.Unavailable:     "unavailable",
	healthlab.Unimplemented:   "unimplemented",
}

func TestErrorKind_isFoundInWrappedErrors(t *testing.T) {
	for k, text := range kinds {
		t.Run(text, func(t *testing.T) {
			require.Equal(t, text, k.Error())
			wrapped := fmt.Errorf("place order: %w", fmt.Errorf("%w: %w", k, errors.New("cause")))
			require.ErrorIs(t, wrapped, k)
			require.Equal(t, k, healthlab.KindOf(wrapped))
			for other := range kinds {
				require.Equal(t, other == k, errors.Is(wrapped, other))
			}
		})
	}
	require.Equal(t, "unknown fault", healthlab.ErrorKind(200).Error())
	require.Len(t, kinds, int(healthlab.Unimplemented)+1)
}

func TestKindOf_returnsTheKindOfAnyError(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want healthlab.ErrorKind
	}{
		{"nil", nil, healthlab.Unknown},
		{"without a kind", errors.New("x"), healthlab.Unknown},
		{"context", context.Canceled, healthlab.Unknown},
		{"the kind itself", healthlab.Forbidden, healthlab.Forbidden},
		{"typed", fmt.Errorf("x: %w", &healthlab.InvalidError{}), healthlab.Invalid},
		{"rule", &healthlab.RuleError{Type: "A"}, healthlab.Precondition},
		{"rule of a kind", &healthlab.RuleError{Type: "A", Kind: healthlab.Exhausted}, healthlab.Exhausted},
		{"the first of two", errors.Join(healthlab.Conflict, healthlab.NotFound), healthlab.Conflict},
		{"depth first", errors.Join(fmt.Errorf("x: %w", healthlab.Conflict), healthlab.NotFound), healthlab.Conflict},
		{"kept as text", fmt.Errorf("%w: lab said: %v", healthlab.Unavailable, healthlab.NotFound), healthlab.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, healthlab.KindOf(tt.err))
		})
	}
}
