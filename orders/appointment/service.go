package appointment

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Settings are the team's settings about appointments. In the zero value everything is off.
type Settings struct {
	// PSCScheduling allows appointments at patient service centers.
	PSCScheduling bool
	// PatientManagedPSC allows providers whose appointments only the patient can change.
	PatientManagedPSC bool
	// CachedAvailability allows answers about free slots that are some minutes old.
	CachedAvailability bool
}

// Feeds ensures that one process at a time refreshes the cache of slots. The store of package orders implements it.
type Feeds interface {
	// ClaimFeed leases the job name for a time. It returns the cursor of the last MoveFeed and the end of the lease on
	// the store's clock. A zero end means that another process has the lease.
	ClaimFeed(ctx context.Context, name string, lease time.Duration) (cursor string, until time.Time, err error)
	// MoveFeed stores a cursor and ends the lease. Precondition if another process has claimed the job since
	// the claim that ends at until.
	MoveFeed(ctx context.Context, name string, until time.Time, cursor string) error
}

// Options are the options of a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Settings returns the settings of a team. Default: everything is off.
	Settings func(ctx context.Context, team healthlab.TeamID) (Settings, error)
	// Centers finds patient service centers. Default: there are none.
	Centers Centers
	// Zips looks up postal codes; Centers needs it.
	Zips Zips
	// Providers are the providers that make appointments: those of home visits with settings, and labs (by
	// slug) whose centers can be booked. Default: none.
	Providers []Provider
	// BookingKeys encrypts the booking keys of offered slots; every process must have the same keys. Default:
	// no slots are offered.
	BookingKeys healthlab.Sealer
	// SlotCache stores free slots for callers who accept slots that are some minutes old; Feeds ensures that
	// one process at a time refreshes it. Default: the provider is always called.
	SlotCache SlotCache
	Feeds     Feeds
	// LabTimeout is the time limit of one call of the lab backend. Default 30 s.
	LabTimeout time.Duration
	// Lease is the time for which one process refreshes a lab's slots. Default: twice LabTimeout.
	Lease time.Duration
	// Idle is the interval at which the cache checks for due refreshes. Default 1 s.
	Idle time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives errors of the background work. Default: slog.Default().
	Log *slog.Logger
}

// Service finds centers and free slots for taking samples. It is safe for concurrent use.
type Service struct {
	catalogue *catalogue.Service
	slots     SlotBackend // nil: no slots are offered
	opts      Options
}

// New returns a Service. Without a backend it finds no free slots and no providers of home visits, but it finds
// centers.
func New(cat *catalogue.Service, backend SlotBackend, opts *Options) *Service {
	s := &Service{catalogue: cat, slots: backend}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Settings == nil {
		s.opts.Settings = func(context.Context, healthlab.TeamID) (Settings, error) {
			return Settings{}, nil
		}
	}
	if s.opts.LabTimeout <= 0 {
		s.opts.LabTimeout = 30 * time.Second
	}
	if s.opts.Lease <= 0 {
		s.opts.Lease = 2 * s.opts.LabTimeout
	}
	if s.opts.Idle <= 0 {
		s.opts.Idle = time.Second
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.NewID == nil {
		s.opts.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.Default()
	}
	return s
}

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// Offer returns an error unless appointments of a type can be offered to a team with these settings. RuleErrors
// APPOINTMENTS_NOT_AVAILABLE (Unimplemented) and PSC_SCHEDULING_NOT_ENABLED (Unavailable).
func (s *Service) Offer(t Type, settings Settings) error {
	if s.slots == nil || s.opts.BookingKeys == nil || t == PatientServiceCenter && s.opts.Centers == nil {
		return NotOffered()
	}
	if t == PatientServiceCenter && !settings.PSCScheduling {
		return &healthlab.RuleError{Kind: healthlab.Unavailable, Type: SchedulingNotEnabled, Msg: "appointments at centers are not enabled for the team; ask the operator to enable them"}
	}
	return nil
}

// NotOffered returns the error APPOINTMENTS_NOT_AVAILABLE (Unimplemented).
func NotOffered() error {
	return &healthlab.RuleError{Kind: healthlab.Unimplemented, Type: AppointmentsNotOffered, Msg: "this installation makes no appointments"}
}

// checkOffered returns the team's settings. RuleErrors as [Service.Offer] if appointments of the type cannot be offered
// to the team.
func (s *Service) checkOffered(ctx context.Context, team healthlab.TeamID, t Type) (Settings, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return settings, fmt.Errorf("team settings: %w", err)
	}
	return settings, s.Offer(t, settings)
}

// Provider returns the settings of a provider of appointments of the type t. False, with settings that have only type
// and slug, if none are configured.
func (s *Service) Provider(t Type, slug string) (Provider, bool) {
	for _, p := range s.opts.Providers {
		if p.Type == t && p.Slug == slug {
			return p, true
		}
	}
	return Provider{Slug: slug, Type: t}, false
}

// Center returns a center of a lab, by the lab's slug and the site code. RuleErrors LAB_NOT_FOUND and
// SITE_UNKNOWN; the latter also for an inactive center.
func (s *Service) Center(ctx context.Context, lab, site string) (Center, error) {
	of, err := s.labBySlug(ctx, lab)
	if err != nil {
		return Center{}, err
	}
	sites, err := s.opts.Centers.CentersAt(ctx, of.ID, []string{site})
	if err != nil {
		return Center{}, fmt.Errorf("find center: %w", err)
	}
	if len(sites) == 0 || sites[0].Inactive {
		return Center{}, rules.Broken(SiteUnknown, "site_code: must be the code of an active center of the lab")
	}
	return sites[0], nil
}

func (s *Service) labBySlug(ctx context.Context, slug string) (catalogue.Lab, error) {
	labs, err := s.catalogue.Labs(ctx)
	if err != nil {
		return catalogue.Lab{}, fmt.Errorf("find labs: %w", err)
	}
	i := slices.IndexFunc(labs, func(l catalogue.Lab) bool { return l.Slug == slug })
	if i < 0 {
		return catalogue.Lab{}, rules.Missing(catalogue.LabNotFound, "lab: must be the slug of a lab; GET /v3/lab_tests/labs lists the labs")
	}
	return labs[i], nil
}
