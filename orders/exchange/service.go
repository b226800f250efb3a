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
	// LabName names the lab's feed of messages in the Store, for hosts with several
	// backends. Default: "lab".
	LabName string
	// SandboxMoves hands the orders of a sandbox to the laboratory, as in production.
	// Default: they wait to be simulated.
	SandboxMoves bool
	// Simulator makes up what a laboratory reports of a simulated order, in a sandbox.
	// Default: orders cannot be simulated.
	Simulator Simulator
	// RedrawLabs are the slugs of the labs whose walk-in patients may come again when
	// a result was lost. Nil means none.
	RedrawLabs []string
	// RequisitionURL returns a URL of an order's requisition, for events. Default: there are
	// no such URLs. See documents.Links.
	RequisitionURL func(ctx context.Context, team healthlab.TeamID, order orders.OrderID, now time.Time) (string, error)
	// Accessed is called before a message of the laboratory is stored, with the user of its
	// order; a zero user for results that are held for review. After an error nothing is stored
	// and the message is tried again. Nil records nothing.
	Accessed func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error
}

// Service hands orders to a laboratory, takes in what it reports, and decides whose a result is, or lets a
// person decide. It is safe for concurrent use.
//
// Every method that takes a team reaches that team's orders only; those of another are
// [healthlab.NotFound].
type Service struct {
	orders      *orders.Service
	catalogue   *catalogue.Service
	store       orders.Store // for callers: without the orders of deleted users
	allOrders   orders.Store // for background work: with them
	reviewStore ReviewStore
	lab         LabBackend
	opts        Options
	shared      orders.Background
}

// New returns a Service between the orders of another one, which are in the store, and a laboratory. Reviews
// keeps results that match no order for certain, in the store of the orders. Clock, ids, log and timing are
// those of the orders. Errors: Invalid, if an interface or the service is nil.
func New(service *orders.Service, store orders.Store, reviews ReviewStore, lab LabBackend, opts *Options) (*Service, error) {
	if service == nil || store == nil || lab == nil {
		return nil, fmt.Errorf("%w: exchange.New: orders, their store and a lab are required", healthlab.Invalid)
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

// Orders returns the service whose orders are handed over.
func (s *Service) Orders() *orders.Service { return s.orders }

func (s *Service) now() time.Time { return healthlab.At(s.shared.Now()).Time }

// Run hands orders to the laboratory, takes in what it reports, and continues simulations until ctx ends. Then
// it lets what is running finish, and returns nil. Any number of processes may run it: one process at a time
// holds the lease of an order, or of the feed of the laboratory. A laboratory that is away, slow or failing
// delays an order and loses none.
//
// The orders of a sandbox wait to be simulated ([Service.Simulate]) unless
// [Options].SandboxMoves is set: they are not handed to the laboratory.
func (s *Service) Run(ctx context.Context) error {
	parts := []work.Part{{Name: "simulations", Run: s.simulationLoop().Run}}
	if s.orders.Environment() != healthlab.Sandbox || s.opts.SandboxMoves {
		parts = append(parts, work.Part{Name: "placing", Run: s.submissionLoop().Run}, work.Part{Name: "lab updates", Run: s.runUpdates})
	}
	return work.Together(ctx, parts)
}

// batchSize is how many orders a host that brings its own scheduler has looked at in one call.
const batchSize = 100

// loop is background work of one kind: orders that are due are claimed for the time of a lease, and worked on.
func (s *Service) loop(name string, claim func(context.Context, int, time.Time, time.Duration) ([]orders.Record, error), do func(context.Context, orders.Record) error) *work.Loop[orders.Record] {
	return &work.Loop[orders.Record]{
		Name: name, Workers: s.shared.Workers, Idle: s.shared.Idle, Log: s.shared.Log, Do: do,
		Claim: func(ctx context.Context, n int) ([]orders.Record, error) {
			return claim(ctx, n, s.now(), s.shared.Lease)
		},
	}
}
