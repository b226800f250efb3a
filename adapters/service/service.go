// Package service assembles the whole of healthlab from one [Config]: users and health data,
// linking and pulls, lab orders, lab reports, questions and signed events, behind one HTTP
// handler.
//
//	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Category: "app", Class: "manual"}})
//	if err != nil {
//		return err
//	}
//	store := memory.New(nil) // or stores.New over sqlite.Open or postgres.Open
//	s, err := service.New(ctx, service.Config{
//		Environment: healthlab.Sandbox, URL: "http://" + listener.Addr().String(), AllowPlaintext: true,
//		Stores: store.Stores, Files: store.Blobs(), Secret: secret, Providers: providers,
//	})
//	if err != nil {
//		return err
//	}
//	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second} // or httpserver.New
//	defer server.Close()
//	go func() { _ = server.Serve(listener) }()
//	return s.Run(ctx)
//
// This is the function serve of the Example. examples/embed is a program that keeps its data.
//
// Every part can be replaced: each is a field of Config, and each package can be used
// without this one. The assembly adds nothing but what the packages need of each other: one
// environment, one guard for addresses that teams choose, the settings of teams, and the
// deletion of a user everywhere.
//
// A service whose [Service.Run] does not run answers requests and does nothing else: no
// event is sent, no order handed over, no data fetched. [Service.Ready] says so, and the
// first request that it answers is logged.
package service

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/exportfiles"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/orders/visits"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Service holds all assembled services. Safe for concurrent use.
type Service struct {
	// The services, for Go callers. Services of orders are nil without Config.Laboratory, Reports is nil
	// without Config.Extractors, and LabHistory without both.
	Health        *healthdata.Service
	Teams         *teamsettings.Service
	Organisations *organisation.Service
	Access        *accesslog.Service
	Aggregate     *aggregate.Service
	Priorities    *aggregate.Preferences
	Continuous    *continuous.Service
	// Pipelines manages the FHIR servers of teams; nil if Stores has none.
	Pipelines   *ehr.Service
	Linking     *linking.Service
	Apps        *linking.Apps
	Pulls       *pull.Service
	Bulk        *bulk.Service
	Orders      *orders.Service
	Exchange    *exchange.Service
	Visits      *visits.Service
	Idempotency *idempotency.Service
	Documents   *documents.Service
	Critical    *critical.Service
	MatchTests  *simulation.MatchTests
	Reports     *labreport.Service
	LabHistory  *labhistory.Service
	Exports     *personexport.Service
	Webhooks    *webhook.Service
	Deliveries  *webhook.Dispatcher

	config    Config
	refresher *linking.CredentialRefresher
	handler   http.Handler
	loops     []Loop

	mu      sync.Mutex
	work    workState
	failure error // error with which Run ended
	warn    sync.Once
}

// New assembles the service. It starts nothing. It returns Invalid with all missing and invalid fields of Config.
func New(ctx context.Context, c Config) (*Service, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Service{config: c}
	if s.config.Sealer == nil {
		key, err := s.derive("sealing")
		if err != nil {
			return nil, err
		}
		if s.config.Sealer, err = healthlab.NewAESSealer(sealingKey, map[string][]byte{sealingKey: key}); err != nil {
			return nil, err
		}
	}
	s.config.Sealer = s.config.Stores.PersonKeys().Sealer(s.config.Sealer)
	for _, build := range []func(context.Context) error{
		s.buildAccess, s.buildTeams, s.buildHealth, s.buildOrders, s.buildWebhooks, s.buildReports, s.buildLabHistory, s.buildExports, s.buildLinking, s.buildHandler, s.buildLoops,
	} {
		if err := build(ctx); err != nil {
			return nil, fmt.Errorf("assemble service: %w", err)
		}
	}
	return s, nil
}

// sealingKey is the id of the key that is derived from Config.Secret.
const sealingKey = "secret"

func (s *Service) derive(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, s.config.Secret, nil, "healthlab: "+purpose, secretBytes)
}

func (s *Service) buildAccess(context.Context) error {
	seed, err := s.derive("access log")
	if err != nil {
		return err
	}
	opts := s.config.Access
	opts.Log = s.config.Log
	s.Access, err = accesslog.New(s.config.Stores.AccessLog(), ed25519.NewKeyFromSeed(seed), &opts)
	return err
}

// Key derives 32 bytes from Config.Secret for a purpose of the host. The keys of two purposes are independent.
func (s *Service) Key(purpose string) ([]byte, error) { return s.derive("host: " + purpose) }

// Accessed returns a function that a background job of the host calls when it reads a person's data. The
// function records the access in the access log. kind names the data, and operation the action.
func (s *Service) Accessed(job, kind, operation string) func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	return s.accessed(job, kind, operation)
}

func (s *Service) accessed(job, kind, operation string) func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
		return s.accessedFor(ctx, job, kind, operation, team, user, "")
	}
}

func (s *Service) accessedFor(ctx context.Context, job, kind, operation string, team healthlab.TeamID, user healthlab.UserID, cause string) error {
	return s.Access.Record(ctx, accesslog.Entry{
		Team: team, Actor: "job:" + job, Person: user, Kind: kind, Operation: operation, Status: http.StatusOK, Request: cause,
	})
}

func (s *Service) buildTeams(context.Context) (err error) {
	s.config.Providers = s.config.Providers.WithLogos(func(slug string) string { return httpapi.LogoURL(s.config.URL, slug) })
	if s.Teams, err = teamsettings.New(s.config.Stores.Teams(), s.config.Providers, s.config.TeamDefaults); err != nil {
		return err
	}
	s.Organisations, err = organisation.New(s.config.Stores.Organisations(), &organisation.Options{
		NewKey: httpapi.KeyMaker(rand.Reader, s.config.Environment, s.config.Region),
		CheckKey: func(key string) error {
			return httpapi.CheckKey(key, s.config.Environment, s.config.Region)
		},
	})
	return err
}

func (s *Service) buildHealth(ctx context.Context) (err error) {
	var labs []catalogue.Lab
	if s.config.Catalogue != nil {
		if labs, err = s.config.Catalogue.Labs(ctx); err != nil {
			return err
		}
	}
	known := func(slug string) bool {
		return s.config.Providers.Get(slug) != nil || slices.ContainsFunc(labs, func(l catalogue.Lab) bool { return l.Slug == slug })
	}
	if s.Priorities, err = aggregate.NewPreferences(s.config.Stores.Priorities(), known); err != nil {
		return err
	}
	opts := s.config.Health
	opts.Environment, opts.Settings, opts.Preference = s.config.Environment, s.Teams.Settings, s.Priorities.Profiles
	// Each function below uses services that are built later, but before its first call.
	opts.Uploaded = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider, resource string, got healthdata.Received) error {
		return s.Pulls.CountUpload(ctx, team, user, provider, resource, got)
	}
	opts.BeforeUpload = s.readForUpload
	opts.Forget = slices.Insert(slices.Clone(opts.Forget), 0, s.accessed("erasure", "data", "erase_user"))
	if s.config.Laboratory != nil {
		opts.BeforeDelete = append(slices.Clone(opts.BeforeDelete), func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
			return unlessErased(s.Orders.CancelForDeletion(ctx, team, user))
		})
		opts.Forget = append(slices.Clone(opts.Forget), func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
			return unlessErased(s.Orders.Files().Forget(ctx, team, user))
		})
	}
	if s.config.Extractors != nil {
		opts.Forget = append(slices.Clone(opts.Forget), func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
			return unlessErased(s.Reports.Forget(ctx, team, user))
		})
	}
	opts.Forget = append(slices.Clone(opts.Forget), func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
		return s.Exports.Forget(ctx, team, user)
	})
	// The function that deletes the user's key comes last, because the others may read encrypted data of
	// the user.
	opts.Forget = append(slices.Clone(opts.Forget), func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
		return s.config.Stores.PersonKeys().Delete(ctx, personkey.Ref{Team: team, User: user})
	})
	if s.Health, err = healthdata.New(s.config.Stores.Users(), s.config.Stores.Data(), s.config.Providers, &opts); err != nil {
		return err
	}
	if s.Aggregate, err = aggregate.New(s.Health, &aggregate.Options{Priorities: s.Priorities.Of, Known: known, LabResults: s.labResults}); err != nil {
		return err
	}
	s.Continuous, err = continuous.New(s.Aggregate, s.config.Stores.Continuous(), s.config.Stores.ContinuousWork(), &continuous.Options{
		Log: s.config.Log,
		Accessed: func(ctx context.Context, t continuous.Task) error {
			return s.accessedFor(ctx, "query", "data", "evaluate_query", t.Team, t.User, t.Query.String())
		},
	})
	if rows := s.config.Stores.Pipelines(); err == nil && rows != nil {
		err = s.buildPipelines(rows)
	}
	return err
}

func (s *Service) buildPipelines(rows *ehr.Rows) (err error) {
	opts, guard := s.config.Pipelines, s.config.Guard
	if guard == nil {
		guard = &webhook.Guard{}
	}
	opts.CheckURL = func(raw string) error {
		_, err := guard.CheckURL(raw)
		return err
	}
	s.Pipelines, err = ehr.New(rows, s.config.Sealer, &opts)
	return err
}

func unlessErased(err error) error {
	// A resumed erasure, or one repeated in a restored backup, finds the key already deleted.
	if errors.Is(err, personkey.ErrErased) {
		return nil
	}
	return err
}

func (s *Service) buildOrders(context.Context) (err error) {
	if s.config.Laboratory == nil {
		return nil
	}
	opts, labs, store := s.config.Orders, s.config.Exchange, s.config.Stores
	opts.Environment, opts.LabTests, opts.People = s.config.Environment, store.LabTests(), store.Persons()
	opts.BeforePlan = s.readForPlan
	if opts.Settings == nil {
		opts.Settings = s.OrderSettings
	}
	printed := &documents.Options{
		TimeZone: func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (*time.Location, error) {
			u, err := s.Health.User(ctx, team, user)
			return u.Location(), err
		},
		Now: opts.Now,
	}
	if s.config.Printer != nil {
		if printed.Links, err = documents.NewLinks(s.config.URL+httpapi.RequisitionFormPath, s.config.Sealer); err != nil {
			return err
		}
		labs.RequisitionURL = printed.Links.URL
	}
	opts.Files, labs.Accessed = s.config.Files, s.accessed("laboratory", "orders", "store_message")
	if labs.Simulator == nil {
		labs.Simulator = simulation.Lab{}
	}
	if s.Orders, err = orders.New(store.Orders(), s.Health, s.config.Catalogue, &opts); err != nil {
		return err
	}
	if s.Exchange, err = exchange.New(s.Orders, store.Orders(), store.Reviews(), s.config.Laboratory, &labs); err != nil {
		return err
	}
	booking := s.config.Visits
	booking.SlotCache, booking.BookingKeys = store.SlotCache(), s.config.Sealer
	if booking.Slots == nil {
		booking.Slots, _ = s.config.Laboratory.(appointment.SlotBackend)
	}
	if booking.Bookings == nil {
		booking.Bookings, _ = s.config.Laboratory.(visits.Backend)
	}
	if s.Visits, err = visits.New(s.Orders, store.Orders(), &booking); err != nil {
		return err
	}
	if s.Critical, err = critical.New(store.CriticalResults(), &critical.Options{Ladder: s.criticalLadder, Now: opts.Now, Idle: opts.Idle, Log: opts.Log}); err != nil {
		return err
	}
	s.Idempotency = idempotency.New(store.OrderKeys(), &s.config.Idempotency)
	s.Documents = documents.New(s.Orders, s.config.Printer, printed)
	s.MatchTests, err = simulation.NewMatchTests(s.Exchange, store.MatchTestRuns(), &simulation.MatchTestOptions{
		User: s.testRunUser, Now: opts.Now, NewID: opts.NewID, Log: opts.Log,
	})
	return err
}

func (s *Service) testRunUser(ctx context.Context, team healthlab.TeamID, clientUserID string) (healthlab.UserID, error) {
	u, _, err := s.Health.CreateOrGet(ctx, team, healthdata.NewUser{ClientUserID: clientUserID})
	return u.ID, err
}

func (s *Service) buildWebhooks(context.Context) error {
	types, err := webhook.NewCatalogue(healthdata.EventTypes(), orders.EventTypes(), exchange.EventTypes(), continuous.EventTypes(), labreport.EventTypes(), webhook.EventTypes())
	if err != nil {
		return err
	}
	store, opts := s.config.Stores, s.config.Webhooks
	const longest, margin = 15 * time.Second, 5 * time.Second
	opts.Lease, opts.Timeout, opts.StartMargin = s.config.Lease, min(longest, s.config.Lease/2), min(margin, s.config.Lease/4)
	opts.Settings, opts.Bodies = s.eventSettings, store.EventBodies()
	if remote, ok := s.config.Stores.Engine().(signaler); ok {
		opts.Signal = remote.Signal()
	}
	send := s.config.Notifier
	if send == nil {
		send = webhook.NewHTTP(&webhook.HTTPOptions{Guard: s.config.Guard, Timeout: opts.Timeout})
	}
	if s.Webhooks, err = webhook.NewService(types, store.Webhooks(), send, s.config.Sealer,
		&webhook.ServiceOptions{Guard: s.config.Guard, Log: opts.Log}); err != nil {
		return err
	}
	if s.Deliveries, err = webhook.NewDispatcher(types, store.Webhooks(), send, s.config.Sealer, &opts); err != nil {
		return err
	}
	store.OnWritten(s.Deliveries.Wake)
	return nil
}

func (s *Service) buildReports(context.Context) (err error) {
	if s.config.Extractors == nil {
		return nil
	}
	opts := s.config.Reports
	opts.Environment = s.config.Environment
	opts.Accessed = func(ctx context.Context, j labreport.Job) error {
		return s.accessedFor(ctx, "report", "reports", "read_report", j.Team, j.User, j.ID.String())
	}
	s.Reports, err = labreport.New(s.config.Stores.ParsingJobs(), s.config.Files, s.Health, s.config.Extractors, &opts)
	return err
}

// buildLabHistory sets LabHistory, which has the results of orders and of parsed reports.
func (s *Service) buildLabHistory(context.Context) (err error) {
	var o labhistory.Orders
	opts := &labhistory.Options{Facts: s.factsOfProfile}
	if s.Orders != nil {
		o, opts.Catalogue = s.Orders, s.Orders.Catalogue()
	}
	var r labhistory.Reports
	if s.Reports != nil {
		r = s.Reports
	}
	if o != nil || r != nil {
		s.LabHistory, err = labhistory.New(s.Health, o, r, opts)
	}
	return err
}

// factsOfProfile returns the sex and age in a user's profile, which select the reference ranges of results.
func (s *Service) factsOfProfile(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, _ healthlab.Date) (labhistory.Facts, error) {
	p, err := s.Health.Profile(ctx, team, user, "")
	if errors.Is(err, healthlab.NotFound) {
		return labhistory.Facts{}, nil
	}
	if err != nil {
		return labhistory.Facts{}, err
	}
	var f labhistory.Facts
	if p.Sex != nil && (*p.Sex == string(refrange.Female) || *p.Sex == string(refrange.Male)) {
		f.Sex = refrange.Sex(*p.Sex)
	}
	if p.BirthDate != nil {
		f.BirthDate = *p.BirthDate
	}
	return f, nil
}

func (s *Service) labResults(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]aggregate.LabResult, error) {
	if s.LabHistory == nil {
		return nil, fmt.Errorf("laboratory results: %w: Config.Laboratory or Config.Extractors must be set", healthlab.Unimplemented)
	}
	return s.LabHistory.Rows(ctx, team, user)
}

func (s *Service) buildExports(context.Context) (err error) {
	sources := exportfiles.Sources(exportfiles.Services{
		Health: s.Health, Continuous: s.Continuous, Orders: s.Orders, Documents: s.Documents, Reports: s.Reports, Access: s.Access,
	})
	opts := s.config.Exports
	opts.Accessed = func(ctx context.Context, j personexport.Job) error {
		return s.accessedFor(ctx, "export", "data", "export_user", j.Team, j.User, j.ID.String())
	}
	s.Exports, err = personexport.New(s.config.Stores.PersonExports(), s.config.Files, s.Health, sources, &opts)
	return err
}

func (s *Service) buildLoops(context.Context) (err error) {
	if s.config.Loops != nil {
		s.loops, err = s.config.Loops(s)
	}
	return err
}

func (s *Service) buildLinking(context.Context) error {
	sign, err := s.derive("link tokens")
	if err != nil {
		return err
	}
	appKey, err := s.derive("user tokens")
	if err != nil {
		return err
	}
	store, opts := s.config.Stores, s.config.Linking
	opts.Environment, opts.Region, opts.BaseURL, opts.Clients = s.config.Environment, string(s.config.Region), s.config.URL, store.TeamClients()
	opts.SigningKeys = [][]byte{sign}
	if opts.Settings == nil {
		opts.Settings = s.LinkSettings
	}
	if s.Linking, err = linking.New(store.Linking(), s.Health, s.config.Connectors, s.config.Sealer, &opts); err != nil {
		return err
	}
	if s.Apps, err = linking.NewApps(store.Apps(), s.Health, appKey, nil); err != nil {
		return err
	}
	s.refresher, err = linking.NewCredentialRefresher(store.Credentials(), s.Health, s.config.Connectors, s.config.Sealer, &linking.CredentialRefresherOptions{Log: s.config.Log, Clients: store.TeamClients()})
	if err != nil {
		return err
	}
	pulls := s.config.Pulls
	pulls.Lease, pulls.Timeout = s.config.Lease, s.config.Lease/2
	pulls.Accessed = s.accessed("pull", "data", "store_page")
	if pulls.Settings == nil {
		pulls.Settings = s.pullSettings
	}
	if s.Pulls, err = pull.New(store.Pulls(), s.Health, s.refresher, s.config.Connectors, &pulls); err != nil {
		return err
	}
	s.Bulk, err = bulk.New(store.Bulk(), s.Linking, s.Pulls, s.config.Sealer, &bulk.Options{Log: s.config.Log})
	return err
}

func (s *Service) buildHandler(context.Context) (err error) {
	api := &s.config.HTTP
	if api.Authenticate == nil {
		if api.Authenticate, err = httpapi.KeyAuth(httpapi.KeysOf(s.Organisations), s.config.Environment, s.config.Region, &httpapi.KeyOptions{Header: api.KeyHeader}); err != nil {
			return err
		}
	}
	services := httpapi.Services{
		Health: s.Health, Aggregate: s.Aggregate, Priorities: s.Priorities, Linking: s.Linking, LinkPages: s.linkPages(), Pulls: s.Pulls, Bulk: s.Bulk, Apps: s.Apps,
		Laboratory: httpapi.Laboratory{Orders: s.Orders, Exchange: s.Exchange, Visits: s.Visits, Documents: s.Documents, Critical: s.Critical, MatchTests: s.MatchTests},
		Reports:    s.Reports, LabHistory: s.LabHistory, Exports: s.Exports,
	}
	if api.AuthenticateManagement != nil {
		services.Webhooks, services.Continuous, services.Teams, services.Organisations = s.Webhooks, s.Continuous, s.Teams, s.Organisations
		services.Pipelines = s.Pipelines
	}
	api.Parts = append(services.Parts(), api.Parts...)
	api.Access, api.Idempotency = s.Access, s.Idempotency
	api.Environment, api.Region = s.config.Environment, s.config.Region
	api.Transact, api.Parquet, api.SendsEvents = s.transact, parquet.Writer{}, true
	if store, ok := s.config.Stores.Engine().(pinger); ok && api.Ping == nil {
		api.Ping = store.Ping
	}
	if api.Limits.Timeout <= 0 {
		api.Limits.Timeout = requestTimeout
	}
	s.handler = s.withHealth(httpapi.Handler(*api))
	return nil
}

// linkPages returns the link pages of the host, or the default ones. It adds a function that reports the progress of
// first imports, unless the host has set one.
func (s *Service) linkPages() *httpapi.LinkPages {
	pages := httpapi.LinkPages{OnDevice: true, Manual: true, Demo: s.config.Environment == healthlab.Sandbox}
	if s.config.LinkPages != nil {
		pages = *s.config.LinkPages
	}
	if pages.FirstImport == nil {
		pages.FirstImport = s.firstImport
	}
	return &pages
}

// requestKey is the context key under which a Service stores its [request].
type requestKey struct{ of *Service }

// request is a request that runs in one transaction.
type request struct {
	tx        store.Tx
	holdsUser bool // the first read of the transaction takes an exclusive lock on the user
}

// errHoldUser ends a run that would upgrade a shared lock of the user to an exclusive one, because two such runs would
// deadlock. The next run takes the exclusive lock first.
var errHoldUser = errors.New("service: the user must be locked exclusively; the request runs again")

// transact runs a request in one transaction of the store. If run returns errHoldUser, it runs once more
// with an exclusive lock on the user.
func (s *Service) transact(ctx context.Context, run func(context.Context) error) error {
	attempt := func(holdsUser bool) error {
		return s.config.Stores.Rows().Update(ctx, func(ctx context.Context, tx store.Tx) error {
			return run(context.WithValue(ctx, requestKey{s}, request{tx, holdsUser}))
		})
	}
	err := attempt(false)
	if errors.Is(err, errHoldUser) {
		err = attempt(true)
	}
	return err
}

// readForUpload reads, in the transaction of a request, everything that an upload needs, including events
// and counters, in one round trip to the database.
func (s *Service) readForUpload(ctx context.Context, u healthdata.UploadStart) error {
	r, ok := ctx.Value(requestKey{s}).(request)
	if !ok {
		return nil
	}
	var q []store.Query
	if r.holdsUser {
		q = append(q, store.User(u.Team, u.User).Hold())
	}
	q = slices.Concat(q, u.Queries, teamsettings.Queries(u.Team), s.config.Stores.ChangeQueries(u.Team),
		pull.CountQueries(pull.UploadKey(u.Team, u.User, u.Provider, u.Resource)))
	if u.EventKey != "" {
		q = append(q, webhook.EventQueries(u.Team, u.User, u.EventKey)...)
	}
	if _, err := r.tx.Read(q...); err != nil || !u.MayConnect || r.holdsUser {
		return err
	}
	who, err := s.Health.User(ctx, u.Team, u.User) // no round trip: the transaction has read the user above
	if err != nil {
		return err
	}
	if c := who.Connection(u.Provider); c == nil || c.Status != healthdata.Connected {
		return errHoldUser
	}
	return nil
}

// readForPlan reads, in the transaction of a request, everything that placing an order needs, including
// events, in one round trip to the database.
func (s *Service) readForPlan(ctx context.Context, p orders.PlanStart) error {
	r, ok := ctx.Value(requestKey{s}).(request)
	if !ok {
		return nil
	}
	q := slices.Concat(p.Queries, teamsettings.Queries(p.Team))
	if p.EventKey != "" {
		q = append(q, webhook.EventQueries(p.Team, p.User, p.EventKey)...)
	}
	_, err := r.tx.Read(q...)
	return err
}

// requestTimeout is the longest duration of a request. The slowest request refreshes a connection, which
// takes up to a minute.
const requestTimeout = 2 * time.Minute

func (s *Service) firstImport(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (httpapi.FirstImport, error) {
	p, err := s.Pulls.Progress(ctx, team, user, provider)
	return httpapi.FirstImport(p), err
}

// Authenticate returns the team and scopes of a request's API key. It returns Unauthenticated without a valid key.
func (s *Service) Authenticate(r *http.Request) (httpapi.Caller, error) {
	return s.config.HTTP.Authenticate(r)
}

// API returns the configuration of the API, for adapters that serve operations with [httpapi.Extend]. The caller must
// not change the values that it refers to.
func (s *Service) API() httpapi.Config { return s.config.HTTP }

// Handler answers the API, the link pages, and /healthz and /readyz.
func (s *Service) Handler() http.Handler { return s.handler }
