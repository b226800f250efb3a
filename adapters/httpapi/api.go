package httpapi

import (
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/linkpages"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// api holds what handlers need.
type api struct {
	Config
	pages     *linkpages.Pages // nil if they are not mounted
	bodies    *server.BodyMemory
	teams     *server.RateLimits
	addresses *server.RateLimits
	store     *server.StoreWatch
}

func newAPI(c Config) api {
	c = c.withDefaults()
	l := c.Limits
	return api{
		Config: c, bodies: server.NewBodyMemory(l.Memory),
		teams:     &server.RateLimits{Rate: l.TeamRate, Burst: l.TeamBurst, Now: l.Now},
		addresses: &server.RateLimits{Rate: l.AddressRate, Burst: l.AddressBurst, Now: l.Now},
		store:     &server.StoreWatch{Ping: c.Ping, Timeout: l.StoreTimeout, Log: c.Log},
	}
}
