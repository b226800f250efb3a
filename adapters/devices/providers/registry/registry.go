// Package registry lists the connectors below adapters/devices/providers, and makes those for which a configuration
// file has a client.
//
//	setups, err := registry.ReadFile("providers-config.json", os.LookupEnv)
//	...
//	configured, err := setups.Connectors(nil)
//	for _, c := range configured {
//		records = append(records, c.Record)                         // for healthdata.NewProviders
//		connectors[c.Record.Slug] = c.Connector.Flows()             // for service.Config.Connectors
//	}
//
// The names to know: [All] and [Find] list the connectors, [ReadConfig] and [ReadFile] read the clients,
// [Config.Connectors] makes the connectors.
package registry

import (
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/dexcom"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/googlehealth"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/oura"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/polar"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/strava"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/suunto"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/wahoo"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/whoop"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/withings"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Entry describes a provider for which the library has a connector.
type Entry struct {
	// Slug is the slug of the provider in the catalogue.
	Slug string
	// Record returns the provider's catalogue record, which the caller may change.
	Record func() healthdata.Provider
	// New returns a connector for an OAuth client. See [rest.New].
	New func(rest.Client, *rest.Options) (*rest.Connector, error)
	// Read decodes a stored page. kind is the name of the collection. See [rest.Definition.Read].
	Read func(kind string, page []byte) (rest.Data, error)
	// Key is true if the client needs a key besides its secret ([rest.Client.Key]).
	Key bool
}

// All returns the providers with a connector, sorted by slug. Each region of a service is a provider of its own.
func All() []Entry {
	out := []Entry{}
	for _, r := range []dexcom.Region{dexcom.UnitedStates, dexcom.Europe, dexcom.Japan, dexcom.Sandbox} {
		out = append(out, Entry{
			Slug: r.Slug(), Record: func() healthdata.Provider { return dexcom.Record(r) }, Read: dexcom.Read,
			New: func(c rest.Client, o *rest.Options) (*rest.Connector, error) { return dexcom.New(r, c, o) },
		})
	}
	return append(out,
		Entry{Slug: googlehealth.Slug, Record: googlehealth.Record, New: googlehealth.New, Read: googlehealth.Read},
		Entry{Slug: oura.Slug, Record: oura.Record, New: oura.New, Read: oura.Read},
		Entry{Slug: polar.Slug, Record: polar.Record, New: polar.New, Read: polar.Read},
		Entry{Slug: strava.Slug, Record: strava.Record, New: strava.New, Read: strava.Read},
		Entry{Slug: suunto.Slug, Record: suunto.Record, New: suunto.New, Read: suunto.Read, Key: true},
		Entry{Slug: wahoo.Slug, Record: wahoo.Record, New: wahoo.New, Read: wahoo.Read},
		Entry{Slug: whoop.Slug, Record: whoop.Record, New: whoop.New, Read: whoop.Read},
		Entry{Slug: withings.Slug, Record: withings.Record, New: withings.New, Read: withings.Read},
	)
}

// Find returns the provider with a slug, or nil.
func Find(slug string) *Entry {
	for _, e := range All() {
		if e.Slug == slug {
			return &e
		}
	}
	return nil
}

// Slugs returns the slugs of [All].
func Slugs() (out []string) {
	for _, e := range All() {
		out = append(out, e.Slug)
	}
	return out
}
