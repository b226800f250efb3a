package visits

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Options adjusts a Service. A zero field means its default.
type Options struct {
	// Slots offers free times. Default: no times are free.
	Slots appointment.SlotBackend
	// Bookings takes the bookings of what Slots offers. Default: no appointment can be made.
	Bookings Backend
	// Centers says where patients can go. Default: no place is known.
	Centers appointment.Centers
	// Zips says where postal codes are; Centers needs it.
	Zips appointment.Zips
	// Providers are those who make appointments, beside phlebotomy providers of which
	// nothing is to be said: centers take appointments where their lab's slug is
	// among them. Default: none.
	Providers []appointment.Provider
	// BookingKeys seals the keys of the slots that are offered; every process needs
	// the same. Default: no slot can be booked.
	BookingKeys healthlab.Sealer
	// SlotCache keeps free slots for those who take them some minutes old. Default:
	// the provider is always asked.
	SlotCache appointment.SlotCache
	// CancellationReasons are why an appointment of a type can be cancelled. Default:
	// [appointment.DefaultCancellationReasons].
	CancellationReasons func(appointment.Type) []appointment.CancellationReason
}

// Service books and changes the appointments of orders. It is safe for concurrent use.
//
// Every method that takes a team reaches that team's orders only; those of another are
// [healthlab.NotFound].
type Service struct {
	orders    *orders.Service
	store     orders.Store      // for callers: without the orders of deleted users
	allOrders orders.Store      // for background work: with them
	due       orders.VisitStore // nil: the store does not find orders whose appointments need something
	places    *appointment.Service
	opts      Options
	shared    orders.Background
}

// New returns a Service for the orders of another one, which are in the store. The store must be an
// [orders.VisitStore], or no appointment can be made. Clock, ids, log and timing are those of the orders.
// Errors: Invalid, if the service or the store is nil.
func New(service *orders.Service, store orders.Store, opts *Options) (*Service, error) {
	if service == nil || store == nil {
		return nil, fmt.Errorf("%w: visits.New: orders and their store are required", healthlab.Invalid)
	}
	s := &Service{orders: service, store: orders.Visible(store), allOrders: store, shared: service.Background()}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.CancellationReasons == nil {
		s.opts.CancellationReasons = appointment.DefaultCancellationReasons
	}
	s.due, _ = store.(orders.VisitStore)
	s.places = appointment.New(service.Catalogue(), s.opts.Slots, &appointment.Options{
		Centers: s.opts.Centers, Zips: s.opts.Zips, Providers: s.opts.Providers, BookingKeys: s.opts.BookingKeys,
		SlotCache: s.opts.SlotCache, Feeds: store, LabTimeout: s.shared.LabTimeout, Lease: s.shared.Lease, Idle: s.shared.Idle,
		Now: s.shared.Now, NewID: s.shared.NewID, Log: s.shared.Log,
		Settings: func(ctx context.Context, team healthlab.TeamID) (appointment.Settings, error) {
			settings, err := service.Settings(ctx, team)
			return placeSettings(settings), err
		},
	})
	return s, nil
}

func placeSettings(s orders.Settings) appointment.Settings {
	return appointment.Settings{PSCScheduling: s.PSCScheduling, PatientManagedPSC: s.PatientManagedPSC, CachedAvailability: s.CachedAvailability}
}

// Places says where and when samples can be taken.
func (s *Service) Places() *appointment.Service { return s.places }

func (s *Service) takesBookings() bool { return s.opts.Bookings != nil && s.due != nil }

// Run follows appointments and keeps the cache of slots until ctx ends. Then it lets what is running
// finish, and returns nil. Any number of processes may run it: one process at a time holds the lease of an
// order's appointments, or of the slots of a provider. A provider that is away, slow or failing delays an
// appointment and loses none.
func (s *Service) Run(ctx context.Context) error {
	var parts []work.Part
	if s.takesBookings() {
		parts = append(parts, work.Part{Name: "appointments", Run: s.visitLoop().Run})
	}
	if s.opts.SlotCache != nil {
		parts = append(parts, work.Part{Name: "slot cache", Run: s.places.RunCache})
	}
	if len(parts) == 0 {
		<-ctx.Done()
	}
	return work.Together(ctx, parts)
}

func (s *Service) now() time.Time { return healthlab.At(s.shared.Now()).Time }

// OrderPSCs returns the centers of an order's lab around its patient. The request's
// postal code, lab and account are the order's. RuleErrors as [appointment.Service.PSCs], and
// PATIENT_ADDRESS_MISSING.
func (s *Service) OrderPSCs(ctx context.Context, team healthlab.TeamID, id orders.OrderID, req appointment.CenterRequest) (appointment.PSCInfo, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return appointment.PSCInfo{}, fmt.Errorf("find centers of order: %w", rules.NotFound(err, orders.OrderNotFound, "the team has no such order"))
	}
	if r.PatientAddress == nil || !rules.ZipForm.MatchString(r.PatientAddress.Zip) || r.LabTest.Lab == nil {
		return appointment.PSCInfo{}, rules.Broken(PatientAddressMissing, "the order must have a patient_address with a zip code")
	}
	req.Zip, req.LabID, req.LabAccountID = r.PatientAddress.Zip[:5], r.LabTest.Lab.ID, nil
	return s.places.PSCs(ctx, team, req)
}
