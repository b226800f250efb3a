package nightscout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook"
)

// One site is one account, however its address is written.
func TestAddress_anySpellingOfASiteIsOneAccount(t *testing.T) {
	c := New(nil)
	for _, typed := range []string{
		"site.example", "https://site.example", "HTTPS://Site.Example/", "site.example:443", "https://site.example:443/api/v1?token=x", " https://site.example//#now",
	} {
		got, err := c.address(typed)
		require.NoError(t, err, typed)
		require.Equal(t, "https://site.example", got, typed)
	}
	got, err := c.address("site.example:8443/ann")
	require.NoError(t, err)
	require.Equal(t, "https://site.example:8443/ann", got)
	plain := New(&Options{Guard: &webhook.Guard{Plain: true}})
	got, err = plain.address("http://site.example:80")
	require.NoError(t, err)
	require.Equal(t, "http://site.example", got)
}
