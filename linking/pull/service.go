package pull

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Service fetches data. Safe for concurrent use.
type Service struct {
	store   Store
	users   *healthdata.Service
	keeper  *linking.Keeper
	pullers map[string]linking.Puller
	// listeners are those of the providers that send something by themselves.
	listeners map[string]linking.Listener
	// wider are those of the pullers that give more than timeseries and summaries.
	wider map[string]linking.WiderPuller
	// together are the sets of resources that one request brings, by provider.
	together map[string][][]string
	opts     Options
	wake     chan struct{}
	parked   parking
	lanes    lanes
}

// Options adjusts a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Limits are those of the providers, by slug. A provider without an entry has those of
	// its record; one without any is asked as often as there is work, and as its answers
	// allow.
	Limits map[string]Limits
	// Settings returns the settings of a team. Default: the zero settings for all.
	Settings func(context.Context, healthlab.TeamID) (TeamSettings, error)
	// Demo makes up the data of demo connections. Default: they have none.
	Demo linking.Puller
	// Pause closes a connection whose ingestion window is over; best
	// linking.Service.Pause. Default: it only stops being asked.
	Pause func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) error

	// Accessed is called before a page with data of a user is stored. After an error nothing is
	// stored, and the page is fetched again later. Default: no call.
	Accessed func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error

	// Every is how often news are looked for. Default 15 minutes.
	Every time.Duration
	// Overlap is how far before the last look a look begins, for data that comes late.
	// Default 48 hours.
	Overlap time.Duration
	// SweepEvery is how often a look goes back further, by SweepBack. Defaults 24 hours
	// and 14 days.
	SweepEvery, SweepBack time.Duration
	// NewsBefore is how far before the link news may reach. Default 14 days.
	NewsBefore time.Duration
	// Piece is the longest range of one request. Default 30 days.
	Piece time.Duration
	// Ahead is how long before its slot a request waits in a worker's hands. Default 2 s.
	Ahead time.Duration
	// RefreshLimit is how many refreshes a user may have in any hour. Default 8.
	RefreshLimit int

	// Workers is how many requests are under way at a time in one process. Default 16. One
	// application at a provider has at most half of them, one team at most three quarters;
	// a quarter is kept for refreshes.
	Workers int
	// Timeout bounds one request. Default 1 minute.
	Timeout time.Duration
	// Lease is how long a task is one process's. Default 5 minutes; at least twice the
	// Timeout.
	Lease time.Duration
	// Idle is how often a process looks for tasks when it has none. Default 500 ms.
	Idle time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives what a person should look at. Default: slog.Default().
	Log *slog.Logger
}

// TeamSettings are the choices of a team.
type TeamSettings struct {
	// HistoryDays says by provider how far back history is fetched.
	HistoryDays map[string]HistoryDays
}

// HistoryDays is how many days of history a team wants; zero leaves it to the provider's
// record. What the provider cannot do is cut off.
type HistoryDays struct {
	Default   int
	Resources map[string]int
}

// New returns a Service that fetches by the connectors' pullers. Invalid if something is
// missing. It starts nothing.
func New(store Store, users *healthdata.Service, keeper *linking.Keeper, connectors map[string]linking.ProviderConnector, opts *Options) (*Service, error) {
	if store == nil || users == nil || keeper == nil {
		return nil, fmt.Errorf("%w: pulls need a store, users and a keeper of grants", healthlab.Invalid)
	}
	s := &Service{
		store: store, users: users, keeper: keeper, pullers: map[string]linking.Puller{}, wake: make(chan struct{}, 1),
		listeners: map[string]linking.Listener{}, wider: map[string]linking.WiderPuller{}, together: map[string][][]string{}, parked: parking{until: map[string]time.Time{}},
	}
	for slug, c := range connectors {
		if users.Providers().Get(slug) == nil {
			return nil, fmt.Errorf("%w: a connector for a provider that is not configured", healthlab.Invalid)
		}
		if c.Puller != nil {
			s.pullers[slug], s.together[slug] = c.Puller, c.Together
			if wider, ok := c.Puller.(linking.WiderPuller); ok {
				s.wider[slug] = wider
			}
		}
		if c.Listener != nil {
			s.listeners[slug] = c.Listener
		}
	}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.setDefaults()
	s.opts.Limits = maps.Clone(s.opts.Limits)
	if s.opts.Limits == nil {
		s.opts.Limits = map[string]Limits{}
	}
	for _, p := range users.Providers().List("") {
		if _, ok := s.opts.Limits[p.Slug]; !ok {
			s.opts.Limits[p.Slug] = limitsOf(p.RateLimits)
		}
	}
	for _, l := range s.opts.Limits {
		for _, one := range append(append([]Limit{}, l.App...), l.User...) {
			if one.Requests <= 0 || one.Per <= 0 || one.Burst > one.Requests {
				return nil, fmt.Errorf("%w: a limit is some requests in some time, and a burst is not more", healthlab.Invalid)
			}
		}
	}
	s.lanes = newLanes(s.opts.Workers)
	if s.opts.Lease < 2*s.opts.Timeout {
		return nil, fmt.Errorf("%w: a lease lasts at least twice as long as a request", healthlab.Invalid)
	}
	return s, nil
}

func (o *Options) setDefaults() {
	orTime := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	const day = 24 * time.Hour
	orTime(&o.Every, 15*time.Minute)
	orTime(&o.Overlap, 2*day)
	orTime(&o.SweepEvery, day)
	orTime(&o.SweepBack, 14*day)
	orTime(&o.NewsBefore, 14*day)
	orTime(&o.Piece, 30*day)
	orTime(&o.Ahead, 2*time.Second)
	orTime(&o.Timeout, time.Minute)
	orTime(&o.Lease, max(5*time.Minute, 2*o.Timeout))
	orTime(&o.Idle, 500*time.Millisecond)
	if o.RefreshLimit <= 0 {
		o.RefreshLimit = 8
	}
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.Settings == nil {
		o.Settings = func(context.Context, healthlab.TeamID) (TeamSettings, error) { return TeamSettings{}, nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

// now reads the clock, once for each operation.
func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// puller returns what fetches for a connection, nil if its data is not fetched.
func (s *Service) puller(c *healthdata.Connection) linking.Puller {
	if c.Demo {
		return s.opts.Demo
	}
	return s.pullers[c.Provider]
}

// refusedSpace is the name space of the ids of refusals.
var refusedSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("healthlab:refused"))
