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

// Background is what the services of orders share: clock, ids, log, and the timing of background work. A
// zero field means its default.
type Background struct {
	// LabTimeout is how long one call of the lab may take. Default 30 s.
	LabTimeout time.Duration
	// Lease is how long an order, or the feed of messages, is one process's to work
	// on. Default: twice LabTimeout.
	Lease time.Duration
	// Retry is how long to wait after so many attempts (from 1) that failed. Default:
	// 30 s, doubled each time, at most an hour.
	Retry func(attempts int) time.Duration
	// Idle is how long background work waits when there is nothing to do. Default
	// 1 s.
	Idle time.Duration
	// Workers is how many orders are handed to the lab at a time. Default 4.
	Workers int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives what went wrong in the background. Default: slog.Default().
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

// Options adjusts a Service. A zero field means its default, unless it is required.
type Options struct {
	Background

	// Environment is sandbox, where orders may be simulated, or production. Required.
	Environment healthlab.Environment
	// Settings returns what a team has switched on. Its context may carry a transaction, so it must do
	// nothing outside of the store. Default: nothing is.
	Settings func(ctx context.Context, team healthlab.TeamID) (Settings, error)
	// People keeps demographics, insurance records and teams' own payors. Default:
	// there are none.
	People people.Store
	// Messenger sends messages to patients. Default: they get none.
	Messenger Messenger
	// CentralLabs are the slugs of the labs that the compendium compares, that areas are asked for, and
	// whose requisitions take a comment; a comment is kept with orders at other labs, and not sent. Nil
	// means all.
	CentralLabs []string
	// Physicians returns a team's own physicians. Default: none.
	Physicians func(ctx context.Context, team healthlab.TeamID) ([]people.Physician, error)
	// Registry knows payors and diagnosis codes. Default: no payor is known, and of
	// codes the form alone counts.
	Registry *people.Registry
	// Portal is where patients see their orders. Default: there is none.
	Portal *portal.Options
	// FastingCodes are the labs' codes of questions about fasting, which may be left without an
	// answer. Default: FSTING.
	FastingCodes []string
	// Files keeps requisitions and notices as they were first printed, and the reports that
	// laboratories print themselves. Default: nothing is kept.
	Files BlobStore
	// LabTests keeps the lab tests that teams make. Default: teams cannot make any.
	LabTests catalogue.LabTestStore
	// HoldLabTests makes new lab tests wait for [catalogue.Service.ApproveLabTest]. Default:
	// they can be ordered at once.
	HoldLabTests bool
	// BeforePlan is called by [Plan.Read]. In a transaction it may read at once what the plan, and what
	// is called in it, will read. Default: none.
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

// Service places orders and says where they are. It is safe for concurrent use.
//
// Every method that takes a team reaches that team's orders only; those of another
// are [healthlab.NotFound]. Input that is wrong is [healthlab.Invalid] with every
// problem; a rule of the business that forbids something is a [healthlab.RuleError]
// with one of the names of this package.
type Service struct {
	store     Store // for callers: without the orders of deleted users
	allOrders Store // for background work: with them
	users     people.Users
	catalogue *catalogue.Service
	people    *people.Service
	opts      Options
}

// New returns a Service. All three interfaces and Options.Environment are required. Errors: Invalid, if one of
// them is missing.
func New(store Store, users people.Users, cat catalogue.Source, opts *Options) (*Service, error) {
	if store == nil || users == nil || cat == nil {
		return nil, fmt.Errorf("%w: orders.New: a store, users and a catalogue are required", healthlab.Invalid)
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
	return s, nil
}

// People keeps demographics and insurance.
func (s *Service) People() *people.Service { return s.people }

// Catalogue answers what the team can order.
func (s *Service) Catalogue() *catalogue.Service { return s.catalogue }

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// Today is the current day in UTC, by the Service's clock: what the Check of a request
// wants.
func (s *Service) Today() healthlab.Date { return rules.UTCDay(s.now()) }

// Get returns one order.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id OrderID) (Order, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return Order{}, fmt.Errorf("get order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return r.Order, nil
}

// Record returns one order as it is kept: for packages above this one, such as documents.
func (s *Service) Record(ctx context.Context, team healthlab.TeamID, id OrderID) (Record, error) {
	r, err := s.store.Get(ctx, team, id)
	return r, rules.NotFound(err, OrderNotFound, "the team has no such order")
}

// Background returns clock, ids, log and timing, with their defaults: for the services above this one.
func (s *Service) Background() Background { return s.opts.Background }

// Environment is sandbox or production.
func (s *Service) Environment() healthlab.Environment { return s.opts.Environment }

// FastingCodes are the labs' codes of questions about fasting.
func (s *Service) FastingCodes() []string { return slices.Clone(s.opts.FastingCodes) }

// CheckUser checks that a user is one of the team: USER_NOT_FOUND if not.
func (s *Service) CheckUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	return people.CheckUser(ctx, s.users, team, user)
}

// Draft returns an order before its first event, which is not stored, for what a laboratory has measured
// without one. The account may be nil.
func (s *Service) Draft(team healthlab.TeamID, user healthlab.UserID, chosen catalogue.Chosen, account *catalogue.LabAccount, at time.Time) Record {
	return s.newRecord(team, planned{OrderID{s.opts.NewID()}, TransactionID{s.opts.NewID()}}, user, chosen, account, at)
}

// Settings returns what the team has switched on.
func (s *Service) Settings(ctx context.Context, team healthlab.TeamID) (Settings, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return settings, fmt.Errorf("team settings: %w", err)
	}
	return settings, nil
}

// List returns one page of the team's orders. Invalid if the query cannot be
// understood. Today is the current day in UTC if the query does not say.
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

// Transaction returns a testing journey with all its orders.
func (s *Service) Transaction(ctx context.Context, team healthlab.TeamID, id TransactionID) (TransactionDetail, error) {
	q := Query{Team: team, Transaction: id, Today: rules.UTCDay(s.now()), Page: 1, Size: 1, Sort: SortCreatedAt, Direction: catalogue.Ascending}
	page, err := s.store.List(ctx, q)
	if err != nil {
		return TransactionDetail{}, fmt.Errorf("get order transaction: %w", err)
	}
	if id.IsZero() || len(page.Orders) == 0 {
		return TransactionDetail{}, rules.Missing(TransactionNotFound, "the team has no such order transaction")
	}
	return page.Orders[0].OrderTransaction.Detail(team), nil
}

// PortalLink makes a link to the portal for a user. Invalid if the request is wrong, or
// the user has no demographics (DEMOGRAPHICS_MISSING); NotFound if the team has no such
// user or order; Unimplemented without a portal.
func (s *Service) PortalLink(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req portal.Request) (portal.Link, error) {
	if err := req.Check(); err != nil {
		return portal.Link{}, err
	}
	if s.opts.Portal == nil {
		return portal.Link{}, fmt.Errorf("portal link: %w", healthlab.Unimplemented)
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

// Physicians returns the physicians of a team. NotFound unless it is the caller's.
func (s *Service) Physicians(ctx context.Context, caller, team healthlab.TeamID) ([]people.Physician, error) {
	if caller != team {
		return nil, rules.Missing(TeamNotFound, "unknown team")
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

// RequisitionComment is what the requisition of an order says beside it; empty for a laboratory
// that takes no comments.
func (s *Service) RequisitionComment(r *Record) string {
	if labs := s.opts.CentralLabs; labs != nil && (r.LabTest.Lab == nil || !slices.Contains(labs, r.LabTest.Lab.Slug)) {
		return ""
	}
	return r.Comment
}
