package httpserver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The bounds of connections leave file handles to the rest of the program.
func TestConnectionLimits_leaveFileHandlesToTheProgram(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		o             Options
		handles       int
		total, ofEach int
	}{
		{"no limit", Options{}, 0, 4000, 2000},
		{"many", Options{}, 1 << 20, 4000, 2000},
		{"1024", Options{}, 1024, 768, 384},
		{"256", Options{}, 256, 160, 80},
		{"fewer than are reserved", Options{}, 64, 1, 1},
		{"reserve", Options{Reserve: 200}, 256, 56, 28},
		{"more than there are", Options{Connections: 10_000, AddressConnections: 100}, 1024, 768, 100},
		{"few", Options{Connections: 3}, 1024, 3, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.o.withDefaults(tt.handles)
			require.Equal(t, tt.total, got.Connections)
			require.Equal(t, tt.ofEach, got.AddressConnections)
		})
	}
	require.Positive(t, fileHandles())
}
