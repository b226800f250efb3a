package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Options adjusts a Service. A zero field means its default.
type Options struct {
	// LabName is the name of the lab's message feed in the Store, for hosts with several backends. Default:
	// "lab".
	LabName string
	// SandboxMoves submits the orders of a sandbox to the laboratory, as in production. Default: false, so orders of a
	// sandbox advance only by [Service.Simulate].
	SandboxMoves bool
	// Simulator generates a laboratory's reports for simulated orders, in a sandbox. Default: orders cannot be
	// simulated.
	Simulator Simulator
	// RedrawLabs are the slugs of the labs whose walk-in patients can have a redraw when a result was lost. Nil
	// means none.
	RedrawLabs []string
	// RequisitionURL returns a URL of an order's requisition, for events. Default: events have no such URL. See
	// documents.Links.
	RequisitionURL func(ctx context.Context, team healthlab.TeamID, order orders.OrderID, now time.Time) (string, error)
	// Accessed is called before a message of the laboratory is stored, with the user of its order; with a zero
	// user for results that are held for review. After an error nothing is stored and the message is processed
	// again later. Nil records nothing.
	Accessed func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error
}

// Service submits orders to a laboratory, processes its messages, and matches results to orders or lets a
// person decide. It is safe for concurrent use.
//
// Every method with a team accesses that team's orders only; those of another team are [healthlab.NotFound].
type Service struct {
	orders      *orders.Service
	catalogue   *catalogue.Service
	store       orders.Store // for callers: hides orders of deleted users
	allOrders   orders.Store // for background work: includes orders of deleted users
	reviewStore ReviewStore
	lab         LabBackend
	opts        Options
	shared      orders.Background
}

// New returns a Service that submits the orders of service to a laboratory. store has these orders; reviews stores
// results that match no order with certainty, in the same store. Clock, ids, log and timing are those of service.
// Invalid if an argument is nil, except opts.
func New(service *orders.Service, store orders.Store, reviews ReviewStore, lab LabBackend, opts *Options) (*Service, error) {
	if service == nil || store == nil || lab == nil {
		return nil, fmt.Errorf("%w: exchange.New: service, store and lab must not be nil", healthlab.Invalid)
	}
	if reviews == nil {
		return nil, fmt.Errorf("%w: exchange.New: a ReviewStore is required; it stores the results that do not match an order with certainty (exchange.NewReviewStore)", healthlab.Invalid)
	}
	s := &Service{
		orders: service, catalogue: service.Catalogue(), store: orders.Visible(store), allOrders: store,
		reviewStore: reviews, lab: lab, shared: service.Background(),
	}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.LabName == "" {
		s.opts.LabName = "lab"
	}
	if s.opts.Accessed == nil {
		s.opts.Accessed = func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil }
	}
	return s, nil
}

// Orders returns the service of the submitted orders.
func (s *Service) Orders() *orders.Service { return s.orders }

func (s *Service) now() time.Time { return healthlab.At(s.shared.Now()).Time }

// Run submits orders to the laboratory, processes its messages, and continues simulations until ctx ends. Then
// it waits for running work, and returns nil. Any number of processes may run it: a lease gives each order, and
// the feed of the laboratory, to one process. A laboratory that is down or slow delays orders and loses none.
//
// The orders of a sandbox wait for a simulation ([Service.Simulate]) and are not submitted unless
// [Options].SandboxMoves is set.
func (s *Service) Run(ctx context.Context) error {
	parts := []work.Part{{Name: "simulations", Run: s.simulationLoop().Run}}
	if s.orders.Environment() != healthlab.Sandbox || s.opts.SandboxMoves {
		parts = append(parts, work.Part{Name: "placing", Run: s.submissionLoop().Run}, work.Part{Name: "lab updates", Run: s.runUpdates})
	}
	return work.Together(ctx, parts)
}

// batchSize is the highest number of orders that one call of a method such as [Service.SubmitDue] processes.
const batchSize = 100

// loop returns a loop of background work: claim leases due orders, and do processes one of them. name is for the log.
func (s *Service) loop(name string, claim func(context.Context, int, time.Time, time.Duration) ([]orders.Record, error), do func(context.Context, orders.Record) error) *work.Loop[orders.Record] {
	return &work.Loop[orders.Record]{
		Name: name, Workers: s.shared.Workers, Idle: s.shared.Idle, Log: s.shared.Log, Do: do,
		Claim: func(ctx context.Context, n int) ([]orders.Record, error) {
			return claim(ctx, n, s.now(), s.shared.Lease)
		},
	}
}
