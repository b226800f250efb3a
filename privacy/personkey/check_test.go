package personkey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// Check needs each key of the host that seals the key of the installation, a team or a person.
func TestCheck_requiresEachHostKeyInUse(t *testing.T) {
	team := personkey.Ref{Team: person().Team}
	for name, refs := range map[string][]personkey.Ref{
		"installation": {{}}, "team": {team}, "person": {person()}, "two persons": {person(), person()}, "all": {{}, team, person()},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.NewPersonKeys()
			for _, ref := range refs {
				_, err := personkey.New(store, sealer(t, "k1"), nil).Seal(t.Context(), ref, "row", []byte("x"))
				require.NoError(t, err)
			}
			check := func(ids ...string) error { return personkey.New(store, sealer(t, ids...), nil).Check(t.Context()) }
			require.NoError(t, check("k1"))
			require.NoError(t, check("k1", "k2"))
			require.Error(t, check("k2"))
			_, err := personkey.New(store, sealer(t, "k2"), nil).Seal(t.Context(), person(), "row", []byte("x"))
			require.NoError(t, err)
			require.NoError(t, check("k1", "k2"))
			require.Error(t, check("k2"))
			require.Error(t, check("k1"))
		})
	}
	var none *personkey.Keys
	require.NoError(t, none.Check(t.Context()))
	require.NoError(t, personkey.New(memory.NewPersonKeys(), sealer(t, "k1"), nil).Check(t.Context()))
}

// Keys that were deleted are passed over.
func TestCheck_ignoresDeletedKeys(t *testing.T) {
	store, ref := memory.NewPersonKeys(), person()
	keys := personkey.New(store, sealer(t, "k1"), nil)
	_, err := keys.Seal(t.Context(), ref, "row", []byte("x"))
	require.NoError(t, err)
	require.NoError(t, keys.Delete(t.Context(), ref))
	require.NoError(t, personkey.New(store, sealer(t, "k2"), nil).Check(t.Context()))
}
