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

// Settings is what a team has switched on of appointments. The zero value has
// everything off.
type Settings struct {
	// PSCScheduling: appointments at patient service centers can be made.
	PSCScheduling bool
	// PatientManagedPSC: providers may be used whose appointments only the patient can
	// change.
	PatientManagedPSC bool
	// CachedAvailability: answers about free slots may be some minutes old.
	CachedAvailability bool
}

// Feeds lets one process at a time refresh the cache of slots. The store of orders
// implements it.
type Feeds interface {
	// ClaimFeed takes a named piece of work for the time of a lease, and returns the cursor
	// that MoveFeed kept last and the end of the lease on the store's clock; a zero end means
	// that another process has the work.
	ClaimFeed(ctx context.Context, name string, lease time.Duration) (cursor string, until time.Time, err error)
	// MoveFeed keeps a cursor and gives the work back. Precondition if the claim that ends
	// at until is not the latest.
	MoveFeed(ctx context.Context, name string, until time.Time, cursor string) error
}

// Options adjusts a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Settings returns what a team has switched on. Default: nothing is.
	Settings func(ctx context.Context, team healthlab.TeamID) (Settings, error)
	// Centers says where patients can go. Default: no place is known.
	Centers Centers
	// Zips says where postal codes are; Centers needs it.
	Zips Zips
	// Providers are those who make appointments, beside phlebotomy providers without
	// settings of their own: centers take appointments where their lab's slug is among
	// them. Default: none.
	Providers []Provider
	// BookingKeys seals the keys of the slots that are offered; every process needs the
	// same. Default: no slots are offered.
	BookingKeys healthlab.Sealer
	// SlotCache keeps free slots for callers who accept some minutes old ones; Feeds lets
	// one process at a time refresh it. Default: the provider is always asked.
	SlotCache SlotCache
	Feeds     Feeds
	// LabTimeout is how long one call of the backend may take. Default 30 s.
	LabTimeout time.Duration
	// Lease is how long the refresh of a lab's slots is one process's. Default: twice
	// LabTimeout.
	Lease time.Duration
	// Idle is how long the cache waits between looks at what is due. Default 1 s.
	Idle time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives what went wrong in the background. Default: slog.Default().
	Log *slog.Logger
}

// Service answers where and when samples can be taken. It is safe for concurrent use.
type Service struct {
	catalogue *catalogue.Service
	slots     SlotBackend // nil: no times are offered
	opts      Options
}

// New returns a Service. Without a backend no times are offered, and no provider visits
// patients; centers are found all the same.
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

// Offer checks that appointments of a type can be offered to a team with these settings.
// RuleErrors APPOINTMENTS_NOT_AVAILABLE (Unimplemented) and PSC_SCHEDULING_NOT_ENABLED
// (Unavailable).
func (s *Service) Offer(t Type, settings Settings) error {
	if s.slots == nil || s.opts.BookingKeys == nil || t == PatientServiceCenter && s.opts.Centers == nil {
		return NotOffered()
	}
	if t == PatientServiceCenter && !settings.PSCScheduling {
		return &healthlab.RuleError{Kind: healthlab.Unavailable, Type: SchedulingNotEnabled, Msg: "appointments at centers are not switched on for the team"}
	}
	return nil
}

// NotOffered returns APPOINTMENTS_NOT_AVAILABLE (Unimplemented).
func NotOffered() error {
	return &healthlab.RuleError{Kind: healthlab.Unimplemented, Type: AppointmentsNotOffered, Msg: "this installation makes no appointments"}
}

// offered is Offer with the team's settings.
func (s *Service) offered(ctx context.Context, team healthlab.TeamID, t Type) (Settings, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return settings, fmt.Errorf("team settings: %w", err)
	}
	return settings, s.Offer(t, settings)
}

// Provider returns the settings of a provider of a type; false if it has none of its own.
func (s *Service) Provider(t Type, slug string) (Provider, bool) {
	for _, p := range s.opts.Providers {
		if p.Type == t && p.Slug == slug {
			return p, true
		}
	}
	return Provider{Slug: slug, Type: t}, false
}

// Center returns a center of a lab, by the lab's slug and its site code. RuleErrors LAB_NOT_FOUND
// and SITE_UNKNOWN, which an inactive center is too.
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
		return Center{}, rules.Broken(SiteUnknown, "site_code: must be a center that is active")
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
		return catalogue.Lab{}, rules.Missing(catalogue.LabNotFound, "there is no such lab")
	}
	return labs[i], nil
}
