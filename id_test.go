package healthlab_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

const (
	textA = "0195a5f0-6f3a-7c1e-9b2d-3f4a5b6c7d8e"
	textB = "7b1f8a52-0e8c-4a35-9d77-5c2f1e0b9a64"
)

func TestID_encodesAndDecodesAsJSON(t *testing.T) {
	type row struct {
		Team  healthlab.TeamID           `json:"team"`
		User  *healthlab.UserID          `json:"user"`
		Count map[healthlab.UserID]int64 `json:"count"`
	}
	in := row{
		Team:  healthlab.TeamID{UUID: uuid.MustParse(textA)},
		Count: map[healthlab.UserID]int64{{UUID: uuid.MustParse(textB)}: 3},
	}
	b, err := json.Marshal(in)
	require.NoError(t, err)
	require.Equal(t, `{"team":"`+textA+`","user":null,"count":{"`+textB+`":3}}`, string(b))

	var out row
	require.NoError(t, json.Unmarshal(b, &out))
	require.Equal(t, in, out)
	require.Error(t, json.Unmarshal([]byte(`{"team":"no id"}`), &out))
}

func TestID_isStoredAndScannedAsSQL(t *testing.T) {
	want := healthlab.UserID{UUID: uuid.MustParse(textB)}
	v, err := want.Value()
	require.NoError(t, err)
	require.Equal(t, textB, v)

	for name, src := range map[string]any{"text": textB, "bytes of text": []byte(textB), "16 bytes": want.UUID[:]} {
		t.Run(name, func(t *testing.T) {
			var got healthlab.UserID
			require.NoError(t, got.Scan(src))
			require.Equal(t, want, got)
		})
	}
	var got healthlab.TeamID
	require.NoError(t, got.Scan(nil))
	require.True(t, got.IsZero())
	require.Error(t, got.Scan(3))
}

func TestID_zeroValueIsZeroAndOmitted(t *testing.T) {
	require.True(t, healthlab.TeamID{}.IsZero())
	require.True(t, healthlab.UserID{}.IsZero())
	require.False(t, healthlab.TeamID{UUID: uuid.MustParse(textA)}.IsZero())
	require.False(t, healthlab.UserID{UUID: uuid.MustParse(textA)}.IsZero())

	b, err := json.Marshal(struct {
		User healthlab.UserID `json:"user,omitzero"`
	}{})
	require.NoError(t, err)
	require.Equal(t, `{}`, string(b))
}
