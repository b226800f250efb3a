package healthdata_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Of several profiles that of the preferred provider counts, whichever changed last.
func TestProfile_isThatOfThePreferredProvider(t *testing.T) {
	numbers := map[string]int{}
	s := newStation(t, healthdata.Options{
		Preference: func(context.Context, healthlab.TeamID) (map[string]int, error) { return numbers, nil },
		Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) {
			return healthdata.TeamSettings{ProviderRawData: true}, nil
		},
	})
	for i, provider := range []string{"acme_band", "manual"} {
		height := int64(170 + i)
		_, err := s.IngestSummaries(t.Context(), s.team, s.user, "profile", healthdata.Upload{Provider: provider}, []healthdata.Summary{
			&healthdata.Profile{Head: healthdata.Head{Raw: json.RawMessage(`{}`)}, Height: &height},
		})
		require.NoError(t, err)
		s.now = s.now.Add(time.Second)
	}
	chosen := func() string {
		p, err := s.Profile(t.Context(), s.team, s.user, "")
		require.NoError(t, err)
		raw, err := s.RawProfile(t.Context(), s.team, s.user, "")
		require.NoError(t, err)
		require.Equal(t, p.Source.Provider, raw.Source.Provider)
		return p.Source.Provider
	}
	numbers["acme_band"] = 1
	require.Equal(t, "acme_band", chosen())
	numbers["manual"] = 2
	require.Equal(t, "manual", chosen())
	numbers["manual"] = -1
	require.Equal(t, "acme_band", chosen())
}
