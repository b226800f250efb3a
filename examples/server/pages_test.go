package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/examples/internal/browse"
)

// A person opens the address that -invite prints, and connects by hand.
func TestInvite_personConnectsByTheLinkPages(t *testing.T) {
	t.Parallel()
	b := browse.Start(t)
	p := start(t, "-invite", "-brand", "Riverside Practice", "-brand-color", "8a2be2")
	user := strings.Fields(strings.TrimPrefix(p.until("link pages of user "), "link pages of user "))[0]
	user = strings.TrimSuffix(user, ",")
	at := p.until("http://")
	tab := b.Open(t, browse.Person{})
	tab.Go(at)
	tab.See("Riverside Practice", "Connect a source", "Acme Ring", "Health Connect", "Manual")
	tab.Shot("server-list")
	tab.Press("Acme Ring")
	tab.Press("Continue to Acme Ring")
	tab.See("Sandbox sign-in", "The app may read")
	tab.Shot("server-sandbox")
	tab.Press("Deny")
	tab.See("Acme Ring did not accept the sign-in")
	tab.Press("Try again")
	tab.Press("Continue to Acme Ring")
	tab.Press("Allow")
	tab.See("Acme Ring is connected")
	var list struct {
		Providers []struct {
			Slug   string `json:"slug"`
			Status string `json:"status"`
		} `json:"providers"`
	}
	p.get("/v2/user/providers/"+user, &list)
	require.Len(t, list.Providers, 1)
	require.Equal(t, "acme_ring", list.Providers[0].Slug)
	require.Equal(t, "connected", list.Providers[0].Status)
	p.quit()
}
