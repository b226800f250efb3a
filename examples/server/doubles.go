package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/dexcom"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/double"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/googlehealth"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/oura"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/polar"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/strava"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/suunto"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/wahoo"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/whoop"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/withings"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// connected is a provider with its connector, for the list of providers.
type connected struct {
	record healthdata.Provider
	flows  linking.ProviderConnector
	origin string // address of the double (test server); empty for a real provider
}

const (
	doublePeople = 3
	doubleDays   = 90
	// doubleWord is the verify token and the signing secret of messages that doubles (test servers of providers)
	// send.
	doubleWord = "double"
)

// doubles lists the providers for which there is a double: a test server with the provider's API.
var doubles = []struct {
	slug  string
	serve func(double.Options) http.Handler
}{
	{dexcom.Europe.Slug(), handlerOf(double.Dexcom)},
	{googlehealth.Slug, handlerOf(double.GoogleHealth)},
	{oura.Slug, handlerOf(double.Oura)},
	{polar.Slug, handlerOf(double.Polar)},
	{strava.Slug, handlerOf(double.Strava)},
	{suunto.Slug, handlerOf(double.Suunto)},
	{wahoo.Slug, handlerOf(double.Wahoo)},
	{whoop.Slug, handlerOf(double.Whoop)},
	{withings.Slug, handlerOf(double.Withings)},
}

func handlerOf[S http.Handler](create func(double.Options) (S, func(*double.Person) double.Truth)) func(double.Options) http.Handler {
	return func(o double.Options) http.Handler {
		s, _ := create(o)
		return s
	}
}

// startDoubles serves a double (test server) of each provider in doubles, on a port of this machine, until ctx
// ends. url is the address of this service, to which doubles send messages.
func (c *config) startDoubles(ctx context.Context, url string) error {
	var people []*double.Person
	for i := range doublePeople {
		people = append(people, double.NewPerson(i+1, time.Now(), doubleDays))
	}
	for _, d := range doubles {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("-doubles: %w", err)
		}
		server := &http.Server{Handler: d.serve(double.Options{People: people}), ReadHeaderTimeout: requestTimeout}
		go func() { _ = server.Serve(listener) }() // Serve returns once ctx has ended
		context.AfterFunc(ctx, func() { _ = server.Close() })
		provider, origin := registry.Find(d.slug), "http://"+listener.Addr().String()
		connector, err := provider.New(rest.Client{ID: "id", Secret: "secret", Key: double.SuuntoKey}, &rest.Options{
			Guard: c.guard(), Origin: origin, VerifyToken: doubleWord,
			MessageURL: url + "/v2/link/push/" + d.slug + "?token=" + doubleWord,
		})
		if err != nil {
			return fmt.Errorf("-doubles: %s: %w", d.slug, err)
		}
		record := provider.Record()
		record.Name += " (double)"
		c.served = append(c.served, connected{record, connector.Flows(), origin})
	}
	return nil
}
