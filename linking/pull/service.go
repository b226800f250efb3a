package pull

import (
	"fmt"
	"maps"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/linking"
)

// Service fetches data of connections. It is safe for concurrent use.
type Service struct {
	store       Store
	users       *healthdata.Service
	credentials *linking.CredentialRefresher
	pullers     map[string]linking.Puller
	// listeners are the listeners of providers that send messages.
	listeners map[string]linking.Listener
	planner   planner
	limits    requestLimits
	opts      Options
	wake      chan struct{}
	limiter   workerLimiter
	failures  work.FailureLog
}

// New returns a Service that fetches with the connectors' pullers. It returns Invalid if an argument is missing.
// It starts no goroutine.
func New(store Store, users *healthdata.Service, refresher *linking.CredentialRefresher, connectors map[string]linking.ProviderConnector, opts *Options) (*Service, error) {
	if store == nil || users == nil || refresher == nil {
		return nil, fmt.Errorf("%w: pull.New: store, users and refresher must not be nil", healthlab.Invalid)
	}
	s := &Service{
		store: store, users: users, credentials: refresher, pullers: map[string]linking.Puller{}, wake: make(chan struct{}, 1),
		listeners: map[string]linking.Listener{},
		planner:   planner{users: users, extended: map[string]linking.ExtendedPuller{}, together: map[string][][]string{}},
	}
	for slug, c := range connectors {
		if users.Providers().Get(slug) == nil {
			return nil, fmt.Errorf("%w: connectors: the key %q must be the slug of a configured provider", healthlab.Invalid, slug)
		}
		if c.Puller != nil {
			s.pullers[slug], s.planner.together[slug] = c.Puller, c.Together
			if extended, ok := c.Puller.(linking.ExtendedPuller); ok {
				s.planner.extended[slug] = extended
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
	for slug, l := range s.opts.Limits {
		for _, one := range append(append([]Limit{}, l.App...), l.User...) {
			if one.Requests <= 0 || one.Per <= 0 || one.Burst > one.Requests {
				return nil, fmt.Errorf("%w: Options.Limits[%q]: Requests must be 1 or more, Per above 0, and Burst at most Requests", healthlab.Invalid, slug)
			}
		}
	}
	s.planner.every = s.opts.Every
	s.limits = requestLimits{
		store: store, byProvider: s.opts.Limits, ahead: s.opts.Ahead, now: s.now, blocked: blockedApps{until: map[string]time.Time{}},
	}
	s.limiter = newWorkerLimiter(s.opts.Workers)
	if s.opts.Lease < 2*s.opts.Timeout {
		return nil, fmt.Errorf("%w: Options.Lease is %v; it must be at least twice Options.Timeout (%v)", healthlab.Invalid, s.opts.Lease, s.opts.Timeout)
	}
	return s, nil
}

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

func (s *Service) puller(c *healthdata.Connection) linking.Puller {
	if c.Demo {
		return s.opts.Demo
	}
	return s.pullers[c.Provider]
}

// Wake makes this process check for tasks at once.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
