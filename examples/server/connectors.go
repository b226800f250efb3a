package main

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/nightscout"
	"github.com/healthlab-dev/healthlab/adapters/devices/oauthrest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

// guard returns the guard of requests to URLs that teams set. It refuses addresses in private networks. In a sandbox it
// allows loopback addresses and plain http.
func (c *config) guard() *webhook.Guard {
	if c.environment != healthlab.Sandbox {
		return &webhook.Guard{}
	}
	return &webhook.Guard{Plain: true, Allow: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	}}
}

// sources has the providers that users can connect, and their connectors by slug.
type sources struct {
	providers  *healthdata.Providers
	connectors map[string]linking.ProviderConnector
}

// sources returns the providers that the flags name: a list of providers, a folder with descriptions of further
// providers, the doubles (test servers), and a file with OAuth clients. In a sandbox, each provider of the class
// cloud without a connector gets an invented one with the options invented, which accepts any password.
func (c *config) sources(invented *sandbox.ConnectorOptions) (*sources, error) {
	list, err := readProviders(c.providers)
	if err == nil && c.providers == "" && c.environment != healthlab.Sandbox {
		list, err = existing(list)
	}
	if err != nil {
		return nil, err
	}
	s := &sources{providers: list, connectors: map[string]linking.ProviderConnector{}}
	if c.connectors != "" {
		if err := s.addFolder(c.connectors, c.guard()); err != nil {
			return nil, err
		}
	}
	if err := s.add(c.served); err != nil {
		return nil, err
	}
	if c.clientsFile != "" {
		if err := s.addClients(c.clientsFile, c.guard()); err != nil {
			return nil, fmt.Errorf("-providers-config: %w", err)
		}
	}
	if c.environment == healthlab.Sandbox {
		all := sandbox.Connectors(s.providers, invented)
		maps.Copy(all, s.connectors)
		s.connectors = all
	}
	return s, nil
}

func existing(list *healthdata.Providers) (*healthdata.Providers, error) {
	return healthdata.NewProviders(slices.DeleteFunc(list.List(""), func(p healthdata.Provider) bool {
		return p.Class != "manual" && p.Class != "sdk_store"
	}))
}

// addFolder adds Nightscout and the providers of a folder: NAME.json describes a provider's API, NAME.client has its
// OAuth client.
func (s *sources) addFolder(dir string, guard *webhook.Guard) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("-connectors: the folder %s must have a file NAME.json for each provider", dir)
	}
	found := []connected{{record: nightscout.Record(), flows: nightscout.New(&nightscout.Options{Guard: guard}).Flows()}}
	for _, file := range files {
		config, connector, err := readConnector(file, guard)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		if slices.ContainsFunc(found, func(x connected) bool { return x.record.Slug == config.Provider.Slug }) {
			return fmt.Errorf("%s: slug: must be unique; another connector has the slug %s", filepath.Base(file), config.Provider.Slug)
		}
		found = append(found, connected{record: config.Provider, flows: connector.Flows()})
	}
	return s.add(found)
}

// addClients adds a connector for each provider for which the file has an OAuth client.
func (s *sources) addClients(file string, guard *webhook.Guard) error {
	clients, err := registry.ReadFile(file, os.LookupEnv)
	if err != nil {
		return err
	}
	all, err := clients.Connectors(&rest.Options{Guard: guard})
	if err != nil {
		return err
	}
	var found []connected
	for _, c := range all {
		found = append(found, connected{record: c.Record, flows: c.Connector.Flows()})
	}
	return s.add(found)
}

// add adds providers with their connectors. A provider in found replaces the provider with the same slug.
func (s *sources) add(found []connected) (err error) {
	records, replaced := []healthdata.Provider{}, map[string]bool{}
	for _, x := range found {
		s.connectors[x.record.Slug], replaced[x.record.Slug] = x.flows, true
		records = append(records, x.record)
	}
	kept := slices.DeleteFunc(s.providers.List(""), func(p healthdata.Provider) bool { return replaced[p.Slug] })
	s.providers, err = healthdata.NewProviders(append(kept, records...))
	return err
}

func readConnector(file string, guard *webhook.Guard) (c oauthrest.Config, _ *oauthrest.Connector, err error) {
	f, err := os.Open(file)
	if err != nil {
		return c, nil, err
	}
	defer f.Close()
	if c, err = oauthrest.ReadConfig(f); err != nil {
		return c, nil, err
	}
	doc, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".client")
	if err != nil {
		return c, nil, err
	}
	id, secret, _ := strings.Cut(string(doc), "\n")
	connector, err := oauthrest.New(c, oauthrest.Client{ID: strings.TrimSpace(id), Secret: strings.TrimSpace(secret)}, &oauthrest.Options{Guard: guard})
	return c, connector, err
}
