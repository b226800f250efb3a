package linking_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// ResealClients moves the clients of a team to the newer key, retired ones among them, and
// changes nothing else of them.
func TestResealClients(t *testing.T) {
	p := newPlace(t)
	clients := p.store.TeamClients()
	older, both := sealer(t, "a", map[string][]byte{"a": key(1)}), sealer(t, "b", map[string][]byte{"a": key(1), "b": key(3)})
	for _, id := range []string{"retired", "current"} {
		box, err := older.Seal(t.Context(), []byte("secret of "+id), []byte("own client "+team.String()+" acme_scale "+id))
		require.NoError(t, err)
		_, err = clients.PutClient(t.Context(), linking.TeamClient{Team: team, Provider: "acme_scale", ClientID: id, Box: box, CreatedAt: p.now, UpdatedAt: p.now})
		require.NoError(t, err)
	}
	before, err := clients.Clients(t.Context(), linking.ClientQuery{Team: team})
	require.NoError(t, err)

	newer := sealer(t, "b", map[string][]byte{"b": key(3)})
	opts := linking.Options{Clients: clients}
	_, err = p.service(newer, opts, key(2)).ResealClients(t.Context(), team)
	require.ErrorIs(t, err, healthlab.Unavailable, "the older key is needed")
	s := p.service(both, opts, key(2))
	n, err := s.ResealClients(t.Context(), team)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = s.ResealClients(t.Context(), team)
	require.NoError(t, err)
	require.Zero(t, n)

	after, err := clients.Clients(t.Context(), linking.ClientQuery{Team: team})
	require.NoError(t, err)
	for i, c := range after {
		plain, err := newer.Open(t.Context(), c.Box, []byte("own client "+team.String()+" acme_scale "+c.ClientID))
		require.NoError(t, err)
		require.Equal(t, "secret of "+c.ClientID, string(plain))
		before[i].Box = c.Box
	}
	require.Equal(t, before, after)
	n, err = p.service(both, linking.Options{}, key(2)).ResealClients(t.Context(), team)
	require.NoError(t, err)
	require.Zero(t, n, "without clients of teams")
}
