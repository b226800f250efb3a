package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones, also where the machine has none

	"golang.org/x/net/netutil"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/uszips"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/webhook"
)

// region is where this service's data stays. It is part of the names of keys.
const region = httpapi.US

//go:embed providers.json
var exampleProviders []byte

//go:embed lab.json
var exampleLab []byte

//go:embed centers.csv
var exampleCenters []byte

// service is everything that runs.
type service struct {
	config
	team       healthlab.TeamID
	url        string
	store      *storage
	teams      *healthdata.Teams
	orgs       *organisation.Service
	health     *healthdata.Service
	links      *linking.Service
	pulls      *pull.Service
	bulk       *bulk.Service
	apps       *linking.Apps
	orders     *orders.Service
	reports    *labreport.Service
	continuous *aggregate.ContinuousService
	endpoints  *webhook.Service
	dispatcher *webhook.Dispatcher
	handler    http.Handler
	closers    []func() error // at the end
}

// build makes the service, which will answer at url, out of the parts. It starts
// nothing.
func build(ctx context.Context, c config, kept *storage, url string) (*service, error) {
	s := &service{config: c, team: teamOf(c.apiKey), url: url, store: kept}
	push, err := c.master.derive("sandbox pushes")
	if err != nil {
		return nil, err
	}
	from, err := c.sources(&sandbox.ConnectorOptions{Page: url + signInPath, PushKey: push, Life: c.grantLife})
	if err != nil {
		return nil, err
	}
	from.providers = from.providers.WithLogos(func(slug string) string { return httpapi.LogoURL(url, slug) })
	if s.teams, err = healthdata.NewTeams(s.store.Teams(), from.providers, s.choices()); err != nil {
		return nil, err
	}
	book, err := catalogue.ReadStaticCatalog(bytes.NewReader(exampleLab))
	if err != nil {
		return nil, err
	}
	questions, preferences, err := s.buildHealth(ctx, from.providers, book)
	if err != nil {
		return nil, err
	}
	seal, err := c.master.sealer()
	if err != nil {
		return nil, err
	}
	files, err := s.files(seal)
	if err != nil {
		return nil, err
	}
	if err := s.buildOrders(book, files, seal); err != nil {
		return nil, err
	}
	if err := s.buildWebhooks(seal); err != nil {
		return nil, err
	}
	if err := s.buildReports(files); err != nil {
		return nil, err
	}
	if err := s.buildOrganisation(ctx); err != nil {
		return nil, err
	}
	whose, err := httpapi.KeyAuth(httpapi.KeysOf(s.orgs), c.environment, region, &httpapi.KeyOptions{Header: c.keyHeader})
	if err != nil {
		return nil, err
	}
	if err := s.buildLinking(from.connectors, seal); err != nil {
		return nil, err
	}
	if s.apps, err = s.buildApps(); err != nil {
		return nil, err
	}
	mount := httpapi.Config{
		Authenticate: whose, Health: s.health, Aggregate: questions, Priorities: preferences, Linking: s.links, Pulls: s.pulls, Bulk: s.bulk, Apps: s.apps,
		Orders: s.orders, OrderKeys: s.store.OrderKeys(), Reports: s.reports, Log: c.log,
		LinkPages: &httpapi.LinkPages{OnDevice: true, Manual: true, Demo: true, FirstImport: s.firstImport},
		KeyHeader: c.keyHeader, IgnoreUnknown: c.ignoreUnknown,
		Limits: httpapi.Limits{Timeout: requestTimeout, TeamRate: c.teamRate, AddressRate: c.addressRate, AddressBurst: int(4 * c.addressRate)},
	}
	if c.compat {
		mount.Compat = &httpapi.Compat{Service: c.compatService}
	}
	if keys := s.managementKeys(); len(keys) > 0 {
		mount.Webhooks, mount.Continuous, mount.Teams, mount.Environment = s.endpoints, s.continuous, s.teams, c.environment
		mount.Region, mount.Organisations = region, s.orgs
		mount.AuthenticateManagement = httpapi.ManagementAuth(keys, nil)
	}
	s.handler = s.withProviders(httpapi.Handler(mount), whose, from.connectors)
	return s, nil
}

// buildHealth makes what keeps health data and answers questions about it.
func (s *service) buildHealth(ctx context.Context, providers *healthdata.Providers, book *catalogue.StaticCatalog) (*aggregate.Service, *aggregate.Preferences, error) {
	labs, err := book.Labs(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := func(slug string) bool {
		return providers.Get(slug) != nil || slices.ContainsFunc(labs, func(l catalogue.Lab) bool { return l.Slug == slug })
	}
	preferences, err := aggregate.NewPreferences(s.store.Priorities(), known)
	if err != nil {
		return nil, nil, err
	}
	if s.health, err = healthdata.New(s.store.Users(), s.store.Data(), providers, &healthdata.Options{
		Environment: s.environment, MaxUsers: s.maxUsers(), Log: s.log, Settings: s.teams.Settings, Preference: preferences.Profiles,
		// The services for reports and pulls are made later, and before anybody calls.
		Uploaded: func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider, resource string, got healthdata.Received) error {
			return s.pulls.Uploaded(ctx, team, user, provider, resource, got)
		},
		GracePeriod: s.deletionGrace,
		BeforeDelete: []func(context.Context, healthlab.TeamID, healthlab.UserID) error{
			func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
				return s.orders.CancelForDeletion(ctx, team, user)
			},
		},
		Forget: []func(context.Context, healthlab.TeamID, healthlab.UserID) error{
			func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
				return errors.Join(s.reports.Forget(ctx, team, user), s.orders.Forget(ctx, team, user))
			},
		},
	}); err != nil {
		return nil, nil, err
	}
	questions, err := aggregate.New(s.health, &aggregate.Options{Priorities: preferences.Of, Known: known})
	if err != nil {
		return nil, nil, err
	}
	if s.continuous, err = aggregate.NewContinuous(questions, s.store.Continuous(), s.store.ContinuousWork(), &aggregate.ContinuousOptions{
		Log: s.log,
	}); err != nil {
		return nil, nil, err
	}
	return questions, preferences, nil
}

// buildOrders makes the desk where tests are ordered, with an invented catalogue.
func (s *service) buildOrders(book *catalogue.StaticCatalog, files orders.BlobStore, seal healthlab.Sealer) error {
	registry, err := sandbox.Registry()
	if err != nil {
		return err
	}
	centers, err := orders.ReadCenterIndex(bytes.NewReader(exampleCenters))
	if err != nil {
		return err
	}
	documents, err := s.documents(files, seal)
	if err != nil {
		return err
	}
	portal, err := s.portal()
	if err != nil {
		return err
	}
	lab := sandbox.NewLab(&sandbox.LabOptions{Catalogue: book, Step: s.labStep()})
	s.orders, err = orders.New(s.store.Orders(), s.health, book, lab, &orders.Options{
		Environment: s.environment, LabTests: s.store.LabTests(), People: s.store.Persons(), Registry: registry,
		Reviews: s.store.Reviews(), MatchTestRuns: s.store.MatchTestRuns(), MatchTestRunUser: s.trialUser, Messenger: &sandbox.Outbox{},
		Documents: documents, Settings: s.orderSettings, Centers: centers, Zips: uszips.Embedded(), BookingKeys: seal, SlotCache: s.store.SlotCache(),
		Providers: []orders.AppointmentProvider{{Slug: "northlab", Type: orders.PatientServiceCenter}}, Log: s.log,
		RedrawLabs: []string{"northlab"}, Portal: portal,
	})
	return err
}

// portal is where the flags say that patients see their orders; nil for nowhere.
func (s *service) portal() (*orders.Portal, error) {
	if s.portalURL == "" {
		return nil, nil
	}
	key, err := s.master.derive("portal links")
	if err != nil {
		return nil, err
	}
	return &orders.Portal{BaseURL: s.portalURL, Key: key}, nil
}

// choices are what holds for a team that has chosen nothing.
func (s *service) choices() healthdata.TeamChoices {
	on := true
	return healthdata.TeamChoices{PartialWebhooks: &on, Minors: &on, Texts: &on, Brand: &healthdata.TeamBrand{CompanyName: s.brand, Color: s.brandColor}}
}

// orderSettings switch everything on that is not the team's choice.
func (s *service) orderSettings(ctx context.Context, team healthlab.TeamID) (orders.Settings, error) {
	c, err := s.teams.Of(ctx, team)
	if err != nil {
		return orders.Settings{}, err
	}
	return orders.Settings{
		Paper:           s.paper,
		PartialWebhooks: *c.PartialWebhooks, Minors: *c.Minors, SMSOff: !*c.PatientSMS, EmailOff: !*c.PatientEmail,
		Reminders: *c.Texts, CriticalEmail: orEmpty(c.CriticalEmail),
		Redraws: true, OnSiteCollection: true, OrderImport: true, InsuranceRead: true, OwnPayors: true,
		PSCScheduling: true, PreRequisitionBooking: true, CachedAvailability: true, BookingIdempotency: true, AsyncConfirmation: true,
		UnmatchedResults: true, UnmatchedTestRuns: true, CompendiumTools: true,
	}, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// eventSettings are what a team has chosen about events.
func (s *service) eventSettings(ctx context.Context, team healthlab.TeamID) (webhook.TeamSettings, error) {
	c, err := s.teams.Of(ctx, team)
	if err != nil {
		return webhook.TeamSettings{}, err
	}
	out := webhook.TeamSettings{Prefixes: c.EventPrefixes}
	if c.Destinations != nil {
		out.Kinds = c.Destinations.Enabled
	}
	return out, nil
}

// linkSettings are what a team has chosen about linking.
func (s *service) linkSettings(ctx context.Context, team healthlab.TeamID) (linking.TeamSettings, error) {
	c, err := s.teams.Of(ctx, team)
	if err != nil {
		return linking.TeamSettings{}, err
	}
	brand := *c.Brand
	if team != s.team && brand == *s.choices().Brand { // the flags name the first team
		t, err := s.orgs.Find(ctx, team)
		if err != nil {
			return linking.TeamSettings{}, err
		}
		brand = healthdata.TeamBrand{CompanyName: t.Name}
	}
	scopes := make(map[string]linking.ScopeRequirement, len(c.Scopes))
	for slug, x := range c.Scopes {
		scopes[slug] = linking.ScopeRequirement{MustGrant: x.Must, MayGrant: x.May}
	}
	return linking.TeamSettings{
		RejectDuplicates: *c.RejectDuplicates,
		Scopes:           scopes,
		Practice:         orEmpty(c.Practice),
		Brand: linking.Brand{
			CompanyName: brand.CompanyName, LogoURL: brand.LogoURL, Color: brand.Color, Website: brand.Website,
			SupportEmail: brand.SupportEmail, SupportContact: brand.SupportContact, Address: brand.Address,
		},
	}, nil
}

// pullSettings are what a team has chosen about histories.
func (s *service) pullSettings(ctx context.Context, team healthlab.TeamID) (pull.TeamSettings, error) {
	c, err := s.teams.Of(ctx, team)
	if err != nil {
		return pull.TeamSettings{}, err
	}
	out := pull.TeamSettings{HistoryDays: make(map[string]pull.HistoryDays, len(c.History))}
	for slug, h := range c.History {
		out.HistoryDays[slug] = pull.HistoryDays(h)
	}
	return out, nil
}

// trialUser makes, or finds, a user for a test run.
func (s *service) trialUser(ctx context.Context, team healthlab.TeamID, name string) (healthlab.UserID, error) {
	u, err := s.health.ResolveUser(ctx, team, name)
	if errors.Is(err, healthlab.NotFound) {
		u, err = s.health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: name})
	}
	return u.ID, err
}

// buildLinking makes what connects people's accounts, and what fetches their data.
func (s *service) buildLinking(connectors map[string]linking.ProviderConnector, seal healthlab.Sealer) error {
	sign, err := s.master.derive("link tokens")
	if err != nil {
		return err
	}
	var own []string // the first team owns all credentials of this service
	for _, p := range s.health.Providers().List("") {
		if p.AuthType == "oauth" {
			own = append(own, p.Slug)
		}
	}
	if s.links, err = linking.New(s.store.Linking(), s.health, connectors, seal, [][]byte{sign}, &linking.Options{
		Environment: s.environment, Region: string(region), BaseURL: s.url, Log: s.log,
		Clients: s.store.TeamClients(),
		Settings: func(ctx context.Context, team healthlab.TeamID) (linking.TeamSettings, error) {
			set, err := s.linkSettings(ctx, team)
			if set.Bulk = true; team == s.team {
				set.OwnOAuth = own
			}
			return set, err
		},
	}); err != nil {
		return err
	}
	grants, err := linking.NewKeeper(s.store.Grants(), s.health, connectors, seal, &linking.KeeperOptions{Log: s.log, Clients: s.store.TeamClients()})
	if err != nil {
		return err
	}
	if s.pulls, err = pull.New(s.store.Pulls(), s.health, grants, connectors, &pull.Options{
		Settings: s.pullSettings, Demo: sandbox.Demo{}, Pause: s.links.Pause, Lease: s.lease, Timeout: s.lease / 2, Log: s.log,
	}); err != nil {
		return err
	}
	s.bulk, err = bulk.New(s.store.Bulk(), s.health, s.links, s.pulls, connectors, seal, &bulk.Options{Log: s.log})
	return err
}

// firstImport says how far the first import of a connection has come.
func (s *service) firstImport(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (httpapi.FirstImport, error) {
	p, err := s.pulls.Progress(ctx, team, user, provider)
	return httpapi.FirstImport(p), err
}

// buildApps makes what signs companion apps in.
func (s *service) buildApps() (*linking.Apps, error) {
	key, err := s.master.derive("user tokens")
	if err != nil {
		return nil, err
	}
	return linking.NewApps(s.store.Apps(), s.health, key, nil)
}

// signInPath is where the sandbox's providers let people sign in, and controlPath where the
// team makes something happen there.
const (
	signInPath  = "/sandbox/sign-in"
	controlPath = "/sandbox/provider"
)

// withProviders puts the providers beside the service: in a sandbox they are one program.
func (s *service) withProviders(next http.Handler, whose func(*http.Request) (healthlab.TeamID, error), connectors map[string]linking.ProviderConnector) http.Handler {
	if s.environment != healthlab.Sandbox {
		return next
	}
	control := http.StripPrefix(controlPath, sandbox.Control(connectors, next, func(r *http.Request, provider, account string) ([]healthlab.UserID, error) {
		team, err := whose(r)
		if err != nil {
			return nil, err
		}
		return s.connectedWith(r.Context(), team, provider, account)
	}))
	mux := http.NewServeMux()
	mux.Handle(signInPath, sandbox.SignInPage(s.url+"/v2/link/connect"))
	mux.HandleFunc(controlPath+"/", func(w http.ResponseWriter, r *http.Request) {
		if _, err := whose(r); err != nil {
			http.Error(w, "the team's API key is missing", http.StatusUnauthorized)
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

// connectedWith returns the users of a team who are connected to a provider with an account.
func (s *service) connectedWith(ctx context.Context, team healthlab.TeamID, provider, account string) ([]healthlab.UserID, error) {
	const page = 500
	var found []healthlab.UserID
	for offset := 0; ; offset += page {
		list, err := s.health.Users(ctx, team, offset, page)
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

// buildWebhooks makes what tells the world.
func (s *service) buildWebhooks(seal healthlab.Sealer) error {
	types, err := webhook.NewCatalogue(healthdata.EventTypes(), orders.EventTypes(), aggregate.EventTypes(), labreport.EventTypes(), webhook.EventTypes())
	if err != nil {
		return err
	}
	guard := s.guard()
	notifier := webhook.NewHTTP(&webhook.HTTPOptions{Guard: guard, Timeout: min(15*time.Second, s.lease/2), Proxy: s.webhookProxy})
	if s.endpoints, err = webhook.NewService(types, s.store.Deliveries(), s.store.Endpoints(), s.store.WebhookLog(),
		notifier, seal, &webhook.ServiceOptions{Guard: guard, Log: s.log}); err != nil {
		return err
	}
	s.dispatcher, err = webhook.NewDispatcher(types, s.store.Deliveries(), s.store.Endpoints(), notifier, seal,
		&webhook.Options{
			Log: s.log, Lease: s.lease, Timeout: min(15*time.Second, s.lease/2), StartMargin: min(5*time.Second, s.lease/4),
			Signal: s.store.signal, Settings: s.eventSettings,
		})
	if err != nil {
		return err
	}
	s.store.news.to.Store(s.dispatcher)
	return nil
}

// teamOf names the team of a key, so that the same key finds its data again.
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

// serve does what the flags ask for, and serves until ctx ends.
func (s *service) serve(ctx context.Context, listener net.Listener, stdout io.Writer) error {
	// Background work outlives ctx by as long as it takes to hand over what is held.
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	var running sync.WaitGroup
	for name, loop := range s.loops() {
		running.Go(func() {
			if err := loop(background); err != nil {
				s.log.Error("background work ended", "work", name, "error", err)
			}
		})
	}
	// ReadTimeout ends the context of a request, so it is as long as the longest request.
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: requestTimeout, WriteTimeout: 2 * requestTimeout,
		IdleTimeout: requestTimeout, MaxHeaderBytes: 64 << 10,
	}
	listener = netutil.LimitListener(listener, maxConnections)
	failed := make(chan error, 1)
	secret, err := s.register(ctx) // before there is anything that the receiver should hear of
	if err != nil {
		err = errors.Join(fmt.Errorf("webhook endpoint: %w", err), listener.Close())
	} else {
		go func() { failed <- server.Serve(listener) }()
		fmt.Fprintf(stdout, "listening on %s\napi key: %s\n", s.url, s.apiKey)
		if secret != "" {
			fmt.Fprintf(stdout, "webhook secret: %s\n", secret)
		}
		err = s.start(ctx, stdout)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		case <-s.store.ended:
			err = errors.New("the database has ended")
		}
	}
	fmt.Fprintln(stdout, "stopping")
	grace, cancel := context.WithTimeout(background, stopGrace)
	defer cancel()
	if closed := server.Shutdown(grace); closed != nil {
		err = errors.Join(err, fmt.Errorf("requests were cut off: %w", closed))
	}
	s.handOver(grace, stdout)
	stopBackground()
	running.Wait()
	for _, closer := range s.closers {
		err = errors.Join(err, closer())
	}
	return err
}

// maxUsers is how many users a team may have; 0 for no limit.
func (s *service) maxUsers() int {
	if s.environment == healthlab.Production {
		return 0
	}
	return s.sandboxUsers
}

// labStep is how long a step of an order takes at the sandbox's laboratory.
func (s *service) labStep() time.Duration {
	if s.sandboxSpeed == 0 {
		return 0 // its default
	}
	const day = 24 * time.Hour
	return max(time.Second, time.Duration(float64(day)/s.sandboxSpeed))
}

// loops is the background work by name. In a sandbox without a speed, orders stay where
// they were placed until they are simulated: they are not sent to the lab.
func (s *service) loops() map[string]func(context.Context) error {
	loops := map[string]func(context.Context) error{
		"continuous queries": s.continuous.Run,
		"deliveries":         s.dispatcher.Run,
		"erasures":           s.health.RunErasures,
		"appointments":       s.orders.RunVisits,
		"slot cache":         s.orders.RunSlotCache,
		"lab reports":        s.reports.Run,
		"idempotency keys":   func(ctx context.Context) error { return s.orders.RunPruning(ctx, s.store.OrderKeys()) },
		"patient messages":   s.orders.RunNotifications,
		"pulls":              s.pulls.Run,
		"bulk operations":    s.bulk.Run,
	}
	if s.environment == healthlab.Sandbox {
		loops["test runs"] = s.orders.RunMatchTestRuns
	}
	maps.Copy(loops, s.store.loops)
	if s.environment == healthlab.Production || s.sandboxSpeed > 0 {
		loops["placing"], loops["updates"] = s.orders.RunPlacing, s.orders.RunUpdates
	}
	return loops
}

// requestTimeout is the longest that a request may take. A refresh waits for a minute at most.
const requestTimeout = 2 * time.Minute

// maxConnections is how many callers may be connected at a time.
const maxConnections = 4000

// stopGrace is how long a stop may take to answer requests and send events.
const stopGrace = 15 * time.Second

// storageGrace is how long the storage may take after that: a private server writes out
// what it holds in memory, and the disk may be slow.
const storageGrace = time.Minute

// start does once what the flags ask for.
func (s *service) start(ctx context.Context, stdout io.Writer) error {
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

// register makes the endpoint that the flags name, unless a process before made it or
// another one does. It returns the secret, unless the flags name that too.
func (s *service) register(ctx context.Context) (secret string, err error) {
	if s.webhookURL == "" {
		return "", nil
	}
	e, err := s.registered(ctx)
	if err == nil && e == nil {
		var made webhook.Endpoint
		if made, err = s.endpoints.Create(ctx, s.team, webhook.NewEndpoint{URL: s.webhookURL, Secret: s.webhookSecret}); err != nil {
			return "", err
		}
		// Of processes that start together the first one's endpoint stays.
		if e, err = s.registered(ctx); err == nil && e.ID != made.ID {
			err = s.endpoints.Delete(ctx, s.team, made.ID)
		}
	}
	if err != nil {
		return "", err
	}
	has, err := s.endpoints.Secret(ctx, s.team, e.ID)
	switch {
	case err != nil:
		return "", err
	case s.webhookSecret == "":
		return has.Text(), nil
	case s.webhookSecret == has.Text():
		return "", nil
	}
	return "", s.endpoints.Rotate(ctx, s.team, e.ID, s.webhookSecret)
}

// registered returns the oldest endpoint at the URL that the flags name; nil if there is
// none.
func (s *service) registered(ctx context.Context) (*webhook.Endpoint, error) {
	u, err := url.Parse(s.webhookURL)
	if err != nil {
		return nil, errors.New("-webhook-url is not a URL") // err quotes it
	}
	var found *webhook.Endpoint
	for q := (webhook.EndpointQuery{Team: s.team}); ; {
		page, err := s.endpoints.List(ctx, q) // the newest first
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

// handOver waits until every event is with its receivers, as long as grace allows, and
// says what is left. What is in a database waits there.
func (s *service) handOver(grace context.Context, stdout io.Writer) {
	if s.store.held == nil {
		fmt.Fprintln(stdout, "stopped: everything is in the database")
		return
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		unrouted, unfinished := s.store.held()
		if unrouted+unfinished == 0 {
			fmt.Fprintln(stdout, "stopped: nothing is held")
			return
		}
		s.dispatcher.Wake()
		select {
		case <-tick.C:
		case <-grace.Done():
			fmt.Fprintf(stdout, "stopped: %d deliveries and %d events were still held in memory, and are lost\n", unfinished, unrouted)
			return
		}
	}
}
