package boltstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Any bytes are a row or an error, and a row has one form.
func FuzzDecode(f *testing.F) {
	whole := encode(store.Row{
		Key: store.Key{Table: "t", Team: healthlab.TeamID{UUID: uuid.New()}, User: healthlab.UserID{UUID: uuid.New()}, ID: "\x00\xff"},
		Due: time.UnixMicro(-1).UTC(), Index: [2]string{"a", ""}, Revision: 7, Doc: []byte("doc"),
	})
	for i := range whole {
		f.Add(whole[:i])
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Unavailable)
			return
		}
		again, err := decode(encode(r))
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
