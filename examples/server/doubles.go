package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/providers/dexcom"
	"github.com/healthlab-dev/healthlab/adapters/providers/double"
	"github.com/healthlab-dev/healthlab/adapters/providers/googlehealth"
	"github.com/healthlab-dev/healthlab/adapters/providers/oura"
	"github.com/healthlab-dev/healthlab/adapters/providers/polar"
	"github.com/healthlab-dev/healthlab/adapters/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/providers/strava"
	"github.com/healthlab-dev/healthlab/adapters/providers/suunto"
	"github.com/healthlab-dev/healthlab/adapters/providers/wahoo"
	"github.com/healthlab-dev/healthlab/adapters/providers/whoop"
	"github.com/healthlab-dev/healthlab/adapters/providers/withings"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// connected is a provider and how it is reached.
type connected struct {
	record healthdata.Provider
	flows  linking.ProviderConnector
}

const (
	doublePeople = 3
	doubleDays   = 90
	// doubleWord proves the messages of doubles.
	doubleWord = "double"
)

// doubles are the providers that have a double.
var doubles = []struct {
	record  healthdata.Provider
	connect func(rest.Client, *rest.Options) (*rest.Connector, error)
	serve   func(double.Options) http.Handler
}{
	{dexcom.Record(dexcom.Europe), func(c rest.Client, o *rest.Options) (*rest.Connector, error) { return dexcom.New(dexcom.Europe, c, o) }, handlerOf(double.Dexcom)},
	{googlehealth.Record(), googlehealth.New, handlerOf(double.GoogleHealth)},
	{oura.Record(), oura.New, handlerOf(double.Oura)},
	{polar.Record(), polar.New, handlerOf(double.Polar)},
	{strava.Record(), strava.New, handlerOf(double.Strava)},
	{suunto.Record(), suunto.New, handlerOf(double.Suunto)},
	{wahoo.Record(), wahoo.New, handlerOf(double.Wahoo)},
	{whoop.Record(), whoop.New, handlerOf(double.Whoop)},
	{withings.Record(), withings.New, handlerOf(double.Withings)},
}

// handlerOf leaves out the truth of a double.
func handlerOf[S http.Handler](create func(double.Options) (S, func(*double.Person) double.Truth)) func(double.Options) http.Handler {
	return func(o double.Options) http.Handler {
		s, _ := create(o)
		return s
	}
}

// startDoubles serves a double of each provider on a port of this machine until ctx ends.
// url is where this service is reached.
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
		go func() { _ = server.Serve(listener) }() // it ends with ctx
		context.AfterFunc(ctx, func() { _ = server.Close() })
		slug := d.record.Slug
		connector, err := d.connect(rest.Client{ID: "id", Secret: "secret", Key: double.SuuntoKey}, &rest.Options{
			Guard: c.guard(), Origin: "http://" + listener.Addr().String(), VerifyToken: doubleWord,
			MessageURL: url + "/v2/link/push/" + slug + "?token=" + doubleWord,
		})
		if err != nil {
			return fmt.Errorf("-doubles: %s: %w", slug, err)
		}
		record := d.record
		record.Name += " (double)"
		c.served = append(c.served, connected{record, connector.Flows()})
	}
	return nil
}
