package orders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/portal"
)

// Background has the settings that the services of orders share: clock, ids, log, and the timing of background
// work. A zero field means its default.
type Background struct {
	// LabTimeout is the time limit of one call of the lab. Default 30 s.
	LabTimeout time.Duration
	// Lease is the time for which one process works on an order, or on the feed of messages. Default: twice
	// LabTimeout.
	Lease time.Duration
	// Retry returns the wait after a number of failed attempts (from 1). Default: 30 s, doubled each time, at
	// most an hour.
	Retry func(attempts int) time.Duration
	// Idle is the interval at which idle background work checks for due orders. Default 1 s.
	Idle time.Duration
	// Workers is the number of orders that are submitted to the lab at a time. Default 4.
	Workers int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives errors of the background work. Default: slog.Default().
	Log *slog.Logger
}

func (b *Background) defaults() {
	if b.LabTimeout <= 0 {
		b.LabTimeout = 30 * time.Second
	}
	if b.Lease <= 0 {
		b.Lease = 2 * b.LabTimeout
	}
	if b.Retry == nil {
		b.Retry = func(attempts int) time.Duration {
			return min(30*time.Second<<min(max(attempts-1, 0), 10), time.Hour)
		}
	}
	if b.Idle <= 0 {
		b.Idle = time.Second
	}
	if b.Now == nil {
		b.Now = time.Now
	}
	if b.NewID == nil {
		b.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if b.Log == nil {
		b.Log = slog.Default()
	}
}

func (b *Background) now() time.Time { return healthlab.At(b.Now()).Time }

// Options are the options of a Service. A zero field means its default, unless it is required.
type Options struct {
	Background

	// Environment is sandbox, where orders may be simulated, or production. Required.
	Environment healthlab.Environment
	// Settings returns the settings of a team. Its context may have a transaction, so it must not access other
	// systems. Default: everything is off.
	Settings func(ctx context.Context, team healthlab.TeamID) (Settings, error)
	// People manages demographics, insurance records and payors of teams. Default: there are none.
	People people.Store
	// Messenger sends messages to patients. Default: they get none.
	Messenger Messenger
	// CentralLabs are the slugs of the labs that the compendium compares, that area queries cover, and whose
	// requisitions have a comment; a comment on orders at other labs is stored and not sent. Nil means all.
	CentralLabs []string
	// Physicians returns a team's own physicians. Default: none.
	Physicians func(ctx context.Context, team healthlab.TeamID) ([]people.Physician, error)
	// Registry has payors and diagnosis codes. Default: there are no payors, and only the form of codes is
	// checked.
	Registry *people.Registry
	// Portal is the portal in which patients see their orders. Default: there is none.
	Portal *portal.Options
	// FastingCodes are the labs' codes of questions about fasting, which may have no answer. Default: FSTING.
	FastingCodes []string
	// Files stores requisitions and notices when they are first printed, and the reports of laboratories.
	// Default: nothing is stored.
	Files BlobStore
	// LabTests stores the lab tests that teams make. Default: teams cannot make lab tests.
	LabTests catalogue.LabTestStore
	// HoldLabTests makes new lab tests wait for [catalogue.Service.ApproveLabTest]. Default:
	// they can be ordered at once.
	HoldLabTests bool
	// BeforePlan is called by [Plan.Read]. In a transaction it may read the rows that the plan will read, in
	// one round trip. Default: none.
	BeforePlan func(context.Context, PlanStart) error
}

func (o *Options) defaults() {
	if o.Settings == nil {
		o.Settings = func(context.Context, healthlab.TeamID) (Settings, error) { return Settings{}, nil }
	}
	if o.FastingCodes == nil {
		o.FastingCodes = []string{"FSTING"}
	}
	o.Background.defaults()
}

// Service places and changes orders. It is safe for concurrent use.
//
// Every method with a team accesses that team's orders only; those of another team are [healthlab.NotFound].
// Invalid input is [healthlab.Invalid] with every problem; a broken business rule is a [healthlab.RuleError]
// with one of the types of this package.
type Service struct {
	store     Store // for callers: hides orders of deleted users
	allOrders Store // for background work: includes orders of deleted users
	users     people.Users
	catalogue *catalogue.Service
	people    *people.Service
	files     *Files
	messages  *PatientMessages
	opts      Options
}

// New returns a Service. All three interfaces and Options.Environment are required. Errors: Invalid, if one of
// them is missing.
func New(store Store, users people.Users, cat catalogue.Source, opts *Options) (*Service, error) {
	if store == nil || users == nil || cat == nil {
		return nil, fmt.Errorf("%w: orders.New: store, users and cat must not be nil", healthlab.Invalid)
	}
	s := &Service{store: Visible(store), allOrders: store, users: users}
	if opts != nil {
		s.opts = *opts
	}
	if err := s.opts.Portal.Check(); err != nil {
		return nil, err
	}
	if err := s.opts.Environment.Check(); err != nil {
		return nil, err
	}
	s.opts.defaults()
	s.catalogue = catalogue.New(cat, &catalogue.Options{
		LabTests: s.opts.LabTests, HoldLabTests: s.opts.HoldLabTests, CentralLabs: s.opts.CentralLabs,
		Facts: s.opts.Registry.Facts, Now: s.opts.Now, NewID: s.opts.NewID,
		CompendiumTools: func(ctx context.Context, team healthlab.TeamID) (bool, error) {
			settings, err := s.opts.Settings(ctx, team)
			return settings.CompendiumTools, err
		},
	})
	s.people = people.New(s.opts.People, users, &people.Options{
		Registry: s.opts.Registry, Now: s.opts.Now, NewID: s.opts.NewID,
		MayReadInsurance: func(ctx context.Context, team healthlab.TeamID) (bool, error) {
			settings, err := s.opts.Settings(ctx, team)
			return settings.InsuranceRead, err
		},
		MayAddPayors: func(ctx context.Context, team healthlab.TeamID) (bool, error) {
			settings, err := s.opts.Settings(ctx, team)
			return settings.OwnPayors, err
		},
	})
	s.files = &Files{orders: store, users: users, blobs: s.opts.Files}
	s.messages = &PatientMessages{orders: s.store, settings: s.Settings, messenger: s.opts.Messenger, shared: s.opts.Background}
	return s, nil
}

// People returns the service of demographics and insurance.
func (s *Service) People() *people.Service { return s.people }

// Catalogue returns the service of the tests that teams can order.
func (s *Service) Catalogue() *catalogue.Service { return s.catalogue }

// Files returns the files of orders.
func (s *Service) Files() *Files { return s.files }

// PatientMessages returns the sender of messages to patients and teams, which is the background work of this
// package.
func (s *Service) PatientMessages() *PatientMessages { return s.messages }

func (s *Service) now() time.Time { return s.opts.now() }

// Today returns the current day in UTC by the Service's clock, for the Check methods of requests.
func (s *Service) Today() healthlab.Date { return rules.UTCDay(s.now()) }

// Get returns one order.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id OrderID) (Order, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return Order{}, fmt.Errorf("get order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return r.Order, nil
}

// Record returns one order as it is stored, for other packages such as documents.
func (s *Service) Record(ctx context.Context, team healthlab.TeamID, id OrderID) (Record, error) {
	r, err := s.store.Get(ctx, team, id)
	return r, rules.NotFound(err, OrderNotFound, "the team has no such order")
}

// Background returns clock, ids, log and timing with their defaults, for the services of other packages.
func (s *Service) Background() Background { return s.opts.Background }

// Environment returns sandbox or production.
func (s *Service) Environment() healthlab.Environment { return s.opts.Environment }

// FastingCodes returns the labs' codes of questions about fasting.
func (s *Service) FastingCodes() []string { return slices.Clone(s.opts.FastingCodes) }

// CheckUser returns USER_NOT_FOUND unless the team has the user.
func (s *Service) CheckUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	return people.CheckUser(ctx, s.users, team, user)
}

// Draft returns a new order without events, and does not store it. It is for a result that has no order yet. account is
// the lab account of the order; nil for none.
func (s *Service) Draft(team healthlab.TeamID, user healthlab.UserID, chosen catalogue.Chosen, account *catalogue.LabAccount, at time.Time) Record {
	return s.newRecord(team, planned{OrderID{s.opts.NewID()}, TransactionID{s.opts.NewID()}}, user, chosen, account, at)
}

// Settings returns the settings of the team.
func (s *Service) Settings(ctx context.Context, team healthlab.TeamID) (Settings, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return settings, fmt.Errorf("team settings: %w", err)
	}
	return settings, nil
}

// List returns one page of the team's orders. Invalid for an invalid query. Today is the current day in UTC by
// default.
func (s *Service) List(ctx context.Context, q Query) (Page, error) {
	q, err := q.Normal()
	if err != nil {
		return Page{}, err
	}
	if q.Today.IsZero() {
		q.Today = rules.UTCDay(s.now())
	}
	page, err := s.store.List(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("list orders: %w", err)
	}
	return page, nil
}

// CountByStatus returns the number of the team's orders in each latest status, without
// statuses that no order has.
func (s *Service) CountByStatus(ctx context.Context, team healthlab.TeamID) (map[LowLevel]int, error) {
	counts, err := s.store.CountByStatus(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("count orders: %w", err)
	}
	return counts, nil
}

// Transaction returns a transaction with all its orders.
func (s *Service) Transaction(ctx context.Context, team healthlab.TeamID, id TransactionID) (TransactionDetail, error) {
	q := Query{Team: team, Transaction: id, Today: rules.UTCDay(s.now()), Page: 1, Size: 1, Sort: SortCreatedAt, Direction: catalogue.Ascending}
	page, err := s.store.List(ctx, q)
	if err != nil {
		return TransactionDetail{}, fmt.Errorf("get order transaction: %w", err)
	}
	if id.IsZero() || len(page.Orders) == 0 {
		return TransactionDetail{}, rules.Missing(TransactionNotFound, "the team has no such order transaction")
	}
	return page.Orders[0].OrderTransaction.detail(team), nil
}

// PortalLink returns a link to the patient portal for a user. Invalid for an invalid request, or if the user
// has no demographics (DEMOGRAPHICS_MISSING); NotFound if the team has no such user or order; Unimplemented
// without a portal.
func (s *Service) PortalLink(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req portal.Request) (portal.Link, error) {
	if err := req.Check(); err != nil {
		return portal.Link{}, err
	}
	if s.opts.Portal == nil {
		return portal.Link{}, fmt.Errorf("portal link: %w: this installation has no patient portal, because Options.Portal is nil", healthlab.Unimplemented)
	}
	_, err := s.people.UserInfo(ctx, team, user)
	var rule *healthlab.RuleError
	if errors.As(err, &rule) && rule.Type == people.UserInfoNotFound {
		return portal.Link{}, &healthlab.RuleError{Kind: healthlab.Invalid, Type: people.DemographicsMissing, Msg: "the user has no demographics"}
	}
	if err != nil {
		return portal.Link{}, err
	}
	if req.OrderID != nil {
		o, err := s.Get(ctx, team, OrderID{*req.OrderID})
		if err != nil || o.UserID != user {
			return portal.Link{}, errors.Join(err, rules.Missing(OrderNotFound, "the user has no such order"))
		}
	}
	return s.opts.Portal.Link(req, user, s.now()), nil
}

// Physicians returns the physicians of a team. NotFound unless team equals caller, the team that asks.
func (s *Service) Physicians(ctx context.Context, caller, team healthlab.TeamID) ([]people.Physician, error) {
	if caller != team {
		return nil, rules.Missing(TeamNotFound, "team_id: must be the team of the API key")
	}
	if s.opts.Physicians == nil {
		return []people.Physician{}, nil
	}
	found, err := s.opts.Physicians(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("list physicians: %w", err)
	}
	return rules.NonNil(found), nil
}

// RequisitionComment returns the comment on the requisition of an order; empty for a laboratory that accepts no
// comments.
func (s *Service) RequisitionComment(r *Record) string {
	if labs := s.opts.CentralLabs; labs != nil && (r.LabTest.Lab == nil || !slices.Contains(labs, r.LabTest.Lab.Slug)) {
		return ""
	}
	return r.Comment
}
