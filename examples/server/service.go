package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // time zones for machines that have none

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/console"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/reference"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/portal"
	"github.com/healthlab-dev/healthlab/webhook"
)

const consolePath = "/console"

// region is the region in which this service stores data. It is part of API keys.
const region = httpapi.US

//go:embed providers.json
var exampleProviders []byte

//go:embed lab.json
var exampleLab []byte

//go:embed centers.csv
var exampleCenters []byte

// host is the assembled service, with the parts of the program that the flags ask for.
type host struct {
	config
	*service.Service
	team    healthlab.TeamID
	url     string
	store   *storage
	files   labreport.BlobStore
	handler http.Handler
	console *console.Console // nil without a management key
	*telemetry
	// receiveResults receives the messages of an HL7 laboratory until its context ends; nil for the simulated
	// laboratory.
	receiveResults func(context.Context) error
	closers        []func() error // functions to call, in this order, when the program stops
	// loops make the background loops that the flags ask for, in addition to those of the service.
	loops []func(*service.Service) (service.Loop, error)
}

// build assembles the service that the flags ask for, on the store kept and with the metrics of t. url is the address
// under which clients will reach it. build starts no goroutine.
func build(ctx context.Context, c config, kept *storage, t *telemetry, url string) (*host, error) {
	s := &host{config: c, team: teamOf(c.apiKey), url: url, store: kept, telemetry: t}
	if s.tour && s.managementKey == "" && len(s.teamKeys) == 0 {
		s.managementKey = rand.Text() // a random key: only the printed link to the console uses it
	}
	if c.environment == healthlab.Production {
		if err := kept.PersonKeys().Check(ctx); err != nil {
			return nil, fmt.Errorf("-sealing-keys or -secret-file: must have the keys that the stored data was encrypted with: %w", err)
		}
	}
	push, err := c.signing.derive("sandbox pushes")
	if err != nil {
		return nil, err
	}
	from, err := c.sources(&sandbox.ConnectorOptions{Page: url + signInPath, PushKey: push, Life: c.grantLife})
	if err != nil {
		return nil, err
	}
	parts := service.Config{
		Environment: c.environment, Region: region, URL: url, Stores: kept.Stores, Secret: c.signing, Log: c.log,
		Providers: from.providers, Connectors: from.connectors, Guard: c.guard(), Lease: c.lease,
		TeamDefaults: teamDefaults(), Brand: s.brandOf,
		Health:  healthdata.Options{MaxUsers: c.maxUsers(), GracePeriod: c.deletionGrace},
		Linking: linking.Options{Settings: s.linkSettings(from.providers)},
		Pulls:   pull.Options{Demo: sandbox.Demo{}},
		Reports: labreport.Options{Workers: c.reportWorkers},
		HTTP:    c.api(), LinkPages: &httpapi.LinkPages{OnDevice: true, Manual: true, Demo: true},
	}
	parts.Notifier = webhook.NewHTTP(&webhook.HTTPOptions{Guard: parts.Guard, Timeout: min(15*time.Second, c.lease/2), Proxy: c.webhookProxy})
	if err := s.addOrders(ctx, &parts); err != nil {
		return nil, err
	}
	for _, add := range []func(*service.Config) error{s.addFiles, s.addLake, s.addPipelines, s.addReports, s.addManagement, s.addMetrics} {
		if err := add(&parts); err != nil {
			return nil, err
		}
	}
	parts.Loops = func(all *service.Service) (out []service.Loop, err error) {
		for _, loop := range s.loops {
			l, err := loop(all)
			if err != nil {
				return nil, err
			}
			out = append(out, l)
		}
		return out, nil
	}
	if s.Service, err = service.New(ctx, parts); err != nil {
		return nil, err
	}
	if err := s.admitFirstTeam(ctx); err != nil {
		return nil, err
	}
	api, err := s.withFHIR(s.Handler())
	if err != nil {
		return nil, err
	}
	if api, err = s.withFileUpload(api); err != nil {
		return nil, err
	}
	pages, err := s.withConsole(api)
	if err != nil {
		return nil, err
	}
	if pages, err = s.withAssistants(pages); err != nil {
		return nil, err
	}
	s.handler = s.withTransportSecurity(s.withTraces(s.withMetrics(s.withProviders(withReference(pages, api), s.callingTeam, from.connectors))))
	return s, nil
}

// api returns the options of the HTTP API that the flags ask for.
func (c *config) api() httpapi.Config {
	api := httpapi.Config{
		KeyHeader: c.keyHeader, LinkTokenHeader: c.linkTokenHeader, IgnoreUnknown: c.ignoreUnknown,
		Limits: httpapi.Limits{Timeout: requestTimeout, TeamRate: c.teamRate, AddressRate: c.addressRate, AddressBurst: int(4 * c.addressRate)},
	}
	if len(c.proxies) > 0 {
		api.ClientAddress = httpapi.ForwardedAddress(c.proxies)
	}
	if c.compat {
		api.Compat = &httpapi.Compat{Service: c.compatService}
	}
	return api
}

// labSlug is the slug of the laboratory in the invented catalogue of tests.
const labSlug = "northlab"

func (s *host) labName() string {
	if s.hl7.target != "" {
		return "hl7"
	}
	return "" // the default
}

// portal returns the options of the patient portal; nil without -portal-url.
func (s *host) portal() (*portal.Options, error) {
	if s.portalURL == "" {
		return nil, nil
	}
	key, err := s.signing.derive("portal links")
	if err != nil {
		return nil, err
	}
	return &portal.Options{BaseURL: s.portalURL, Key: key}, nil
}

func teamDefaults() teamsettings.Choices {
	on := true
	return teamsettings.Choices{PartialWebhooks: &on, Minors: &on, Texts: &on}
}

// brandOf returns the brand (name and colour) that the pages of a team show if the team has set none. For the first
// team it is that of the flags; other teams have their name only.
func (s *host) brandOf(ctx context.Context, team healthlab.TeamID) (teamsettings.Brand, error) {
	if team == s.team {
		return teamsettings.Brand{CompanyName: s.brand, Color: s.brandColor}, nil
	}
	t, err := s.Organisations.Find(ctx, team)
	return teamsettings.Brand{CompanyName: t.Name}, err
}

func (s *host) orderSettings(ctx context.Context, team healthlab.TeamID) (orders.Settings, error) {
	set, err := s.OrderSettings(ctx, team)
	set.Paper = s.paper
	return set, err
}

// linkSettings returns a function that returns a team's settings of linking. In them, the deployment's OAuth clients
// belong to the first team.
func (s *host) linkSettings(providers *healthdata.Providers) func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
	var own []string
	for _, p := range providers.List("") {
		if p.AuthType == "oauth" {
			own = append(own, p.Slug)
		}
	}
	return func(ctx context.Context, team healthlab.TeamID) (linking.TeamSettings, error) {
		set, err := s.LinkSettings(ctx, team)
		if team == s.team {
			set.OwnOAuth = own
		}
		return set, err
	}
}

// signInPath is the path of the sign-in pages of invented providers. controlPath is the path at which a team makes
// an invented provider send a message or lose a consent.
const (
	signInPath  = "/sandbox/sign-in"
	controlPath = "/sandbox/provider"
)

// controlTime is the time limit of each of the two lookups for a request below controlPath: the team of the API key,
// and the users with the provider's account. Both together stay below the time limit of a request.
const controlTime = 4 * time.Second

func (s *host) callingTeam(r *http.Request) (healthlab.TeamID, error) {
	ctx, stop := context.WithTimeout(r.Context(), controlTime)
	defer stop()
	c, err := s.Authenticate(r.WithContext(ctx))
	return c.Team, err
}

// withProviders adds the pages of the sandbox's invented providers to next. whose returns the team of a request's API
// key. Outside of a sandbox it returns next.
func (s *host) withProviders(next http.Handler, whose func(*http.Request) (healthlab.TeamID, error), connectors map[string]linking.ProviderConnector) http.Handler {
	if s.environment != healthlab.Sandbox {
		return next
	}
	control := http.StripPrefix(controlPath, sandbox.Control(connectors, next, func(r *http.Request, provider, account string) ([]healthlab.UserID, error) {
		team, err := whose(r)
		if err != nil {
			return nil, err
		}
		ctx, stop := context.WithTimeout(r.Context(), controlTime)
		defer stop()
		return s.connectedWith(ctx, team, provider, account)
	}))
	mux := http.NewServeMux()
	mux.Handle(signInPath, sandbox.SignInPage(s.url+"/v2/link/connect"))
	mux.HandleFunc(controlPath+"/", func(w http.ResponseWriter, r *http.Request) {
		if _, err := whose(r); err != nil {
			if !errors.Is(err, healthlab.Unauthenticated) {
				w.Header().Set("Retry-After", "5")
				http.Error(w, "the database did not respond; try again in 5 seconds", http.StatusServiceUnavailable)
				return
			}
			http.Error(w, "missing or unknown API key; send it in the "+cmp.Or(s.keyHeader, "x-service-api-key")+" header", http.StatusUnauthorized)
			return
		}
		control.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == signInPath || strings.HasPrefix(r.URL.Path, controlPath+"/") {
			mux.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// connectedWith returns the users of a team that have connected a provider with this account. account is the provider's
// own id of the person.
func (s *host) connectedWith(ctx context.Context, team healthlab.TeamID, provider, account string) ([]healthlab.UserID, error) {
	const page = 500
	var found []healthlab.UserID
	for offset := 0; ; offset += page {
		list, err := s.Health.Users(ctx, team, offset, page)
		if err != nil {
			return nil, err
		}
		for i := range list.Users {
			if slices.ContainsFunc(list.Users[i].Connections, func(c healthdata.Connection) bool {
				return c.Provider == provider && c.ExternalUserID != nil && *c.ExternalUserID == account
			}) {
				found = append(found, list.Users[i].ID)
			}
		}
		if offset+len(list.Users) >= list.Total {
			return found, nil
		}
	}
}

func teamOf(key string) healthlab.TeamID {
	sum := sha256.Sum256([]byte(key))
	return healthlab.TeamID{UUID: uuid.NewSHA1(uuid.NameSpaceURL, sum[:])}
}

func readProviders(file string) (*healthdata.Providers, error) {
	if file == "" {
		return healthdata.ReadProviders(bytes.NewReader(exampleProviders))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return healthdata.ReadProviders(f)
}

// serve starts the parts that the flags ask for, serves until ctx ends, and then stops all of them.
func (s *host) serve(ctx context.Context, listener net.Listener, stdout io.Writer) error {
	stopMetrics, err := s.serveMetrics(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("-metrics-addr: %w", err), listener.Close())
	}
	// Background work outlives ctx, so that it can deliver pending events after a stop.
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	worked := make(chan error, 1)
	go func() { worked <- s.Run(background) }()
	var receiving sync.WaitGroup
	if s.receiveResults != nil {
		receiving.Go(func() {
			if err := s.receiveResults(background); err != nil {
				s.log.Error("the reception of laboratory results has stopped", "error", err)
			}
		})
	}
	server := httpserver.New(s.handler, s.limits())
	failed := make(chan error, 1)
	secret, err := s.register(ctx) // before anything can cause an event
	if err != nil {
		err = errors.Join(fmt.Errorf("webhook endpoint: %w", err), listener.Close())
	} else {
		go func() { failed <- s.answer(server, listener) }()
		_, _ = io.WriteString(stdout, s.startupText(listener.Addr()))
		if secret != "" {
			fmt.Fprintf(stdout, "webhook secret: %s\n", secret)
		}
		for _, d := range s.served {
			fmt.Fprintf(stdout, "double of %s: %s\n", d.record.Slug, d.origin)
		}
		err = s.start(ctx, stdout)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		case err = <-worked:
			worked <- nil
			err = fmt.Errorf("background work ended: %w", err)
		}
	}
	fmt.Fprintln(stdout, "stopping")
	grace, cancel := context.WithTimeout(background, stopGrace)
	defer cancel()
	answered, cancelRequests := context.WithTimeout(grace, answerGrace)
	defer cancelRequests()
	if closed := server.Shutdown(answered); closed != nil {
		err = errors.Join(err, fmt.Errorf("the server stopped before all requests ended: %w", closed))
	}
	s.drainEvents(grace, stdout)
	stopBackground()
	err = errors.Join(err, <-worked)
	receiving.Wait()
	err = errors.Join(err, stopMetrics())
	for _, closer := range s.closers {
		err = errors.Join(err, closer())
	}
	return err
}

// startupText returns the text that the program prints at its start, a name and a value on each line. The first line
// has the address at which it listens, even if the public address is another one; the last line says how to stop it.
func (s *host) startupText(at net.Addr) string {
	lines := []string{"listening on " + s.listenURL(at)}
	if s.apiKeyMade {
		lines = append(lines, "api key: "+s.apiKey)
	}
	open := "closed; -management-key opens it"
	if s.console != nil {
		open = s.url + consolePath
	}
	lines = append(lines, "data: "+s.store.place, "organisation: "+organisationOf(s.team).String(), "team: "+s.team.String(),
		"docs: "+s.url+reference.Path, "console: "+open, "stop: Ctrl-C or SIGTERM")
	return strings.Join(lines, "\n") + "\n"
}

func (c *config) maxUsers() int {
	if c.environment == healthlab.Production {
		return 0
	}
	return c.sandboxUsers
}

// labStep returns how long the simulated laboratory takes for each step of an order.
func (c *config) labStep() time.Duration {
	if c.sandboxSpeed == 0 {
		return 0 // the laboratory's default
	}
	const day = 24 * time.Hour
	return max(time.Second, time.Duration(float64(day)/c.sandboxSpeed))
}

func (s *host) answer(server *httpserver.Server, l net.Listener) error {
	if s.tlsCert != "" {
		return server.ServeTLS(l, s.tlsCert, s.tlsKey)
	}
	return server.Serve(l)
}

// withTransportSecurity tells browsers to use only https for a year (RFC 6797), if the service's own URL is https.
func (s *host) withTransportSecurity(next http.Handler) http.Handler {
	if !strings.HasPrefix(s.url, "https://") {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}

// requestTimeout is the time limit of a request. The slowest one refreshes a connection to a provider, which takes
// up to a minute.
const requestTimeout = 2 * time.Minute

// limits returns the options that limit concurrent connections, so that file handles remain for the database, the
// laboratory and others.
func (s *host) limits() *httpserver.Options {
	const others, laboratory = 64, 100 // file handles for: files, pipes, the log, and requests to receivers and providers
	reserve := others + keyConnections + metricsConnections
	if s.store.pool != nil {
		reserve += int(s.store.pool.Config().MaxConns)
	}
	if s.receiveResults != nil {
		reserve += laboratory
	}
	return &httpserver.Options{
		Body: httpserver.BodyTimes{Whole: requestTimeout}, Idle: requestTimeout, Write: 2 * requestTimeout,
		Reserve: reserve, Proxies: s.proxies,
	}
}

// stopGrace is the time limit, after a stop, for finishing requests and then delivering events. answerGrace is the
// part of it for requests.
const (
	stopGrace   = 15 * time.Second
	answerGrace = 10 * time.Second
)

// storageGrace is the time limit for closing the store at the end. A private database server writes its memory to
// the disk first, which may be slow.
const storageGrace = time.Minute

// start does the one-time work of the flags: an import (-import), an invitation (-invite), a tour (-tour).
func (s *host) start(ctx context.Context, stdout io.Writer) error {
	if s.importPath != "" {
		if err := s.importFiles(ctx, stdout); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	if s.invite {
		if err := s.printInvitation(ctx, stdout); err != nil {
			return fmt.Errorf("invitation: %w", err)
		}
	}
	if s.tour {
		if err := s.playTour(ctx, stdout); err != nil {
			return fmt.Errorf("tour: %w", err)
		}
	}
	return nil
}

// register creates the webhook endpoint of -webhook-url, unless it exists, and gives it the secret of -webhook-secret.
// It returns the secret of the endpoint, to be printed, or "" if -webhook-secret sets it.
func (s *host) register(ctx context.Context) (secret string, err error) {
	if s.webhookURL == "" {
		return "", nil
	}
	e, err := s.registered(ctx)
	if err == nil && e == nil {
		var made webhook.Endpoint
		if made, err = s.Webhooks.Create(ctx, s.team, webhook.NewEndpoint{URL: s.webhookURL, Secret: s.webhookSecret}); err != nil {
			return "", err
		}
		// If several processes start together, each keeps the endpoint that was created first, and deletes its own.
		if e, err = s.registered(ctx); err == nil && e.ID != made.ID {
			err = s.Webhooks.Delete(ctx, s.team, made.ID)
		}
	}
	if err != nil {
		return "", err
	}
	has, err := s.Webhooks.Secret(ctx, s.team, e.ID)
	switch {
	case err != nil:
		return "", err
	case s.webhookSecret == "":
		return has.Text(), nil
	case s.webhookSecret == has.Text():
		return "", nil
	}
	return "", s.Webhooks.Rotate(ctx, s.team, e.ID, s.webhookSecret)
}

// registered returns the oldest webhook endpoint of the first team at -webhook-url; nil if there is none.
func (s *host) registered(ctx context.Context) (*webhook.Endpoint, error) {
	u, err := url.Parse(s.webhookURL)
	if err != nil {
		return nil, errors.New("-webhook-url must be an http:// or https:// URL") // err would quote it
	}
	var found *webhook.Endpoint
	for q := (webhook.EndpointQuery{Team: s.team}); ; {
		page, err := s.Webhooks.List(ctx, q) // newest first, so the last match is the oldest
		if err != nil {
			return nil, err
		}
		for _, e := range page.Endpoints {
			if e.URL == u.String() {
				found = &e
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return found, nil
		}
	}
}

// drainEvents waits until every event is delivered or grace ends, and prints how many events and deliveries are lost.
// It waits only for a store in memory: a durable store has undelivered events after a restart too.
func (s *host) drainEvents(grace context.Context, stdout io.Writer) {
	if !s.store.volatile {
		if s.freshDir {
			fmt.Fprintln(stdout, "stopped: the folder of the tour is removed")
			return
		}
		fmt.Fprintln(stdout, "stopped: everything is in "+s.store.place)
		return
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, _ := s.store.Backlog(context.WithoutCancel(grace)) // in memory it fails only if the context has ended
		if left.Unrouted+left.Unfinished == 0 {
			fmt.Fprintln(stdout, "stopped: nothing is held")
			return
		}
		s.Deliveries.Wake()
		select {
		case <-tick.C:
		case <-grace.Done():
			fmt.Fprintf(stdout, "stopped: %d deliveries and %d events were still held in memory, and are lost\n", left.Unfinished, left.Unrouted)
			return
		}
	}
}
