package httpapi

import (
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/linkpages"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// api holds the configuration and the services that the handlers use.
type api struct {
	Config
	Services
	across
	pages     *linkpages.Pages // nil unless the part LinkingPages is mounted
	bodies    *server.BodyMemory
	teams     *server.RateLimits
	addresses *server.RateLimits
	store     *server.StoreWatch
}

// newAPI mounts the parts of a configuration and prepares them. It panics if a service that a part requires is
// missing.
func newAPI(c Config) api {
	a := mountParts(c)
	for _, p := range a.Config.Parts {
		if p.prepare != nil {
			p.prepare(&a)
		}
	}
	return a
}

// mountParts stores the services of the parts in an api. It does not call Part.prepare, which needs all parts mounted.
func mountParts(c Config) api {
	c = c.withDefaults()
	l := c.Limits
	a := api{
		Config: c, bodies: server.NewBodyMemory(l.Memory, l.MemoryWait),
		teams:     &server.RateLimits{Rate: l.TeamRate, Burst: l.TeamBurst, Now: l.Now},
		addresses: &server.RateLimits{Rate: l.AddressRate, Burst: l.AddressBurst, Now: l.Now},
		store:     &server.StoreWatch{Ping: c.Ping, Timeout: l.StoreTimeout, Log: c.Log},
	}
	known := c.Environment == healthlab.Sandbox || c.Environment == healthlab.Production
	for _, p := range c.Parts {
		if p.managed && (c.AuthenticateManagement == nil || !known) {
			panic("httpapi: Webhooks, ContinuousQueries, EHRPipelines, TeamSettings and Organisations need Config.AuthenticateManagement and Config.Environment")
		}
		p.mount(&a)
	}
	return a
}
