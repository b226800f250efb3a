package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/store"
)

// Plan is a request that places or registers an order, with the catalogue's data for it. The catalogue may be a
// remote service, so it is read before the transaction that stores the order. Run returns an error of the
// catalogue if the rules need its data.
type Plan struct {
	orders Store
	before func(context.Context, PlanStart) error // Options.BeforePlan; nil for none
	ids    planned
	start  PlanStart
	run    func(context.Context, planned) (Order, error)
}

// PlanStart describes the rows that a [Plan] will read, for [Options].BeforePlan.
type PlanStart struct {
	Team healthlab.TeamID
	User healthlab.UserID // zero if unknown
	// EventKey is the Key of the order's events; empty if unknown.
	EventKey string
	// Queries are the reads of every run of the plan, with their locks.
	Queries []store.Query
}

// ID returns the id that the plan has made for a new order; zero for a plan of [Plans.Register], which changes an
// existing order.
func (p *Plan) ID() OrderID { return p.ids.order }

// Run checks the rules and stores the order. It uses only the store, so it may run in a transaction, and may run again.
// A new order gets the given id; a zero id means [Plan.ID]. If the team has an order with the id, Run returns that
// order, whatever the request. Conflict if another team's order has the id.
func (p *Plan) Run(ctx context.Context, id OrderID) (Order, error) {
	if id.IsZero() || p.ids.order.IsZero() {
		return p.run(ctx, p.ids)
	}
	if kept, err := p.orders.Get(ctx, p.start.Team, id); !errors.Is(err, healthlab.NotFound) {
		return kept.Order, err
	}
	o, err := p.run(ctx, planned{id, p.ids.transaction})
	if errors.Is(err, healthlab.Conflict) {
		if kept, missed := p.orders.Get(ctx, p.start.Team, id); missed == nil {
			return kept.Order, nil
		}
	}
	return o, err
}

// Read calls Options.BeforePlan with the reads of [Plan.Run] and the queries in more, so that a transaction can read
// all their rows in one round trip. It is a no-op without BeforePlan.
func (p *Plan) Read(ctx context.Context, more ...store.Query) error {
	if p.before == nil {
		return nil
	}
	start := p.start
	start.Queries = slices.Concat(start.Queries, more)
	return p.before(ctx, start)
}

// planned are the ids of a new order, the same in each run of its plan.
type planned struct {
	order       OrderID
	transaction TransactionID
}

// offer is the catalogue's data for an order, or the error of reading it.
type offer struct {
	catalogue.Offer
	err error
}

// Choose implements [catalogue.Offer].
func (o *offer) Choose(onSite bool) (catalogue.Chosen, catalogue.Accounts, error) {
	if o.err != nil {
		return catalogue.Chosen{}, catalogue.Accounts{}, o.err
	}
	return o.Offer.Choose(onSite)
}

// Plans makes plans for orders. It shares rules and errors with the methods of its [Service].
type Plans struct{ s *Service }

// Plans returns the Plans of the service.
func (s *Service) Plans() Plans { return Plans{s} }

// offer reads the catalogue's data for a selection. If one of the errors in refused is not nil, it reads nothing and
// the offer has these errors.
func (p Plans) offer(ctx context.Context, team healthlab.TeamID, w catalogue.Selection, refused ...error) offer {
	if err := errors.Join(refused...); err != nil {
		return offer{err: err}
	}
	o, err := p.s.catalogue.Offer(ctx, team, w, p.s.opts.NewID)
	return offer{o, err}
}

func (p Plans) newOrder(team healthlab.TeamID, user healthlab.UserID, run func(context.Context, planned) (Order, error)) *Plan {
	ids := planned{OrderID{p.s.opts.NewID()}, TransactionID{p.s.opts.NewID()}}
	return p.plan(ids, PlanStart{Team: team, User: user, EventKey: ids.order.String(), Queries: newOrderQueries(team, user, ids)}, run)
}

func (p Plans) plan(ids planned, start PlanStart, run func(context.Context, planned) (Order, error)) *Plan {
	return &Plan{orders: p.s.store, before: p.s.opts.BeforePlan, ids: ids, start: start, run: run}
}

// Place plans [Service.PlaceAs].
func (p Plans) Place(ctx context.Context, team healthlab.TeamID, req PlaceRequest) *Plan {
	w, refused := req.selection()
	o := p.offer(ctx, team, w, refused, req.Check(p.s.Today()))
	return p.newOrder(team, req.UserID, func(ctx context.Context, ids planned) (Order, error) {
		return p.s.place(ctx, team, ids, req, &o)
	})
}

// Create plans [Service.Create].
func (p Plans) Create(ctx context.Context, team healthlab.TeamID, req CreateRequest) *Plan {
	w, refused := req.selection()
	o := p.offer(ctx, team, w, refused, req.Check(p.s.Today()))
	return p.newOrder(team, req.UserID, func(ctx context.Context, ids planned) (Order, error) {
		return p.s.create(ctx, team, ids, req, &o)
	})
}

// Import plans [Service.ImportAs].
func (p Plans) Import(ctx context.Context, team healthlab.TeamID, req ImportRequest) *Plan {
	place := req.place()
	w, refused := place.selection()
	o := p.offer(ctx, team, w, refused, req.Check(p.s.Today()))
	return p.newOrder(team, req.UserID, func(ctx context.Context, ids planned) (Order, error) {
		return p.s.importOrder(ctx, team, ids, req, &o)
	})
}

// Testkit plans [Service.PlaceTestkitAs].
func (p Plans) Testkit(ctx context.Context, team healthlab.TeamID, req TestkitRequest) *Plan {
	o := p.offer(ctx, team, catalogue.Selection{LabTests: []catalogue.LabTestID{req.LabTestID}}, req.Check())
	return p.newOrder(team, req.UserID, func(ctx context.Context, ids planned) (Order, error) {
		return p.s.placeTestkit(ctx, team, ids, req, &o)
	})
}

// Register plans [Service.Register].
func (p Plans) Register(ctx context.Context, team healthlab.TeamID, req RegisterRequest) *Plan {
	var from linkedAccounts
	from.Accounts, from.err = p.s.catalogue.Accounts(ctx, team)
	start := PlanStart{Team: team}
	if req.UserID != nil {
		start.User, start.Queries = *req.UserID, []store.Query{store.User(team, *req.UserID)}
	}
	return p.plan(planned{}, start, func(ctx context.Context, _ planned) (Order, error) {
		at := p.s.now()
		if err := req.Check(rules.UTCDay(at)); err != nil {
			return Order{}, err
		}
		o, err := p.s.register(ctx, team, req, &from, Step{On: KitRegistered, At: at, EventID: p.s.opts.NewID()})
		if err != nil {
			return Order{}, fmt.Errorf("register kit: %w", err)
		}
		return o, nil
	})
}
