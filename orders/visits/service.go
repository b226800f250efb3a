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

// Options are the options of a Service. A zero field means its default.
type Options struct {
	// Slots finds free slots. Default: there are none.
	Slots appointment.SlotBackend
	// Bookings books the slots of Slots. Default: no appointment can be made.
	Bookings Backend
	// Centers finds patient service centers. Default: there are none.
	Centers appointment.Centers
	// Zips looks up postal codes; Centers needs it.
	Zips appointment.Zips
	// Providers are the providers that make appointments: those of home visits with settings, and labs (by
	// slug) whose centers can be booked. Default: none.
	Providers []appointment.Provider
	// BookingKeys encrypts the booking keys of offered slots; every process must have the same keys. Default:
	// no slot can be booked.
	BookingKeys healthlab.Sealer
	// SlotCache stores free slots for callers who accept slots that are some minutes old. Default: the provider
	// is always called.
	SlotCache appointment.SlotCache
	// CancellationReasons are the reasons for cancelling appointments of a type. Default:
	// [appointment.DefaultCancellationReasons].
	CancellationReasons func(appointment.Type) []appointment.CancellationReason
}

// Service books and changes the appointments of orders. It is safe for concurrent use.
//
// Every method with a team accesses that team's orders only; those of another team are [healthlab.NotFound].
type Service struct {
	orders    *orders.Service
	store     orders.Store      // for callers: hides orders of deleted users
	allOrders orders.Store      // for background work: includes orders of deleted users
	due       orders.VisitStore // nil if the store is no [orders.VisitStore]
	places    *appointment.Service
	opts      Options
	shared    orders.Background
}

// New returns a Service for the appointments of service's orders; store has these orders. Appointments can be made only
// if store is an [orders.VisitStore]. The clock, ids, log and timing are those of service. Invalid if service or store
// is nil.
func New(service *orders.Service, store orders.Store, opts *Options) (*Service, error) {
	if service == nil || store == nil {
		return nil, fmt.Errorf("%w: visits.New: service and store must not be nil", healthlab.Invalid)
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

// Places returns the service that finds centers and free slots.
func (s *Service) Places() *appointment.Service { return s.places }

func (s *Service) canBook() bool { return s.opts.Bookings != nil && s.due != nil }

// Run does the background work on appointments and refreshes the cache of slots until ctx ends. Then it waits
// for running work, and returns nil. Any number of processes may run it: a lease gives an order's appointments,
// or the slots of a provider, to one process. A provider that is down or slow delays appointments and loses
// none.
func (s *Service) Run(ctx context.Context) error {
	var parts []work.Part
	if s.canBook() {
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

// OrderPSCs returns the centers of an order's lab around its patient. The postal code, lab and account are
// those of the order. RuleErrors as [appointment.Service.PSCs], and PATIENT_ADDRESS_MISSING.
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
