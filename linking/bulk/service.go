package bulk

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// Service changes many connections at once. It is safe for concurrent use.
type Service struct {
	store Store
	users *healthdata.Service
	links *linking.Service
	pulls *pull.Service
	seal  healthlab.Sealer
	opts  Options
	wake  chan struct{}
}

// Options configures a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Wait is the longest time for which a call with wait waits for the end of its operation. Default 20 seconds.
	Wait time.Duration
	// Idle is the interval at which an idle process checks for operations. Default 1 second.
	Idle time.Duration
	// Keep is how long an operation is listed after its end. Default 90 days.
	Keep time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of operations. Default UUID version 7.
	NewID func() uuid.UUID
	// Log receives the errors of the background work. Default: slog.Default().
	Log *slog.Logger
}

// New returns a Service on a store. links has the users and the connectors, pulls fetches histories, and seal encrypts
// the tokens that an import stores. Everything except opts is required; it returns Invalid if an argument is missing.
// It starts no goroutine.
func New(store Store, links *linking.Service, pulls *pull.Service, seal healthlab.Sealer, opts *Options) (*Service, error) {
	if store == nil || links == nil || pulls == nil || seal == nil {
		return nil, fmt.Errorf("%w: bulk.New: store, links, pulls and seal must not be nil", healthlab.Invalid)
	}
	s := &Service{store: store, users: links.Users(), links: links, pulls: pulls, seal: seal, wake: make(chan struct{}, 1)}
	if opts != nil {
		s.opts = *opts
	}
	o := &s.opts
	if o.Wait <= 0 {
		o.Wait = 20 * time.Second
	}
	if o.Keep <= 0 {
		o.Keep = 90 * 24 * time.Hour
	}
	if o.Idle <= 0 {
		o.Idle = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return s, nil
}

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// Types of the healthlab.RuleError of this package.
const (
	// RuleNotEnabled: bulk operations are not enabled for the team.
	RuleNotEnabled = "BULK_NOT_ENABLED"
	// RuleOtherCredentials: the team cannot move connections of the provider, because it has no OAuth client of its own
	// there, or because the connector has no [linking.TokenCodec].
	RuleOtherCredentials = "NO_OWN_CREDENTIALS"
)

// enabled returns the settings of a team if bulk operations are enabled, otherwise an error.
func (s *Service) enabled(ctx context.Context, team healthlab.TeamID) (linking.TeamSettings, error) {
	settings, err := s.links.Settings(ctx, team)
	if err == nil && !settings.Bulk {
		err = &healthlab.RuleError{Kind: healthlab.Forbidden, Type: RuleNotEnabled, Msg: "bulk operations are not enabled for the team; ask the operator to enable them"}
	}
	return settings, err
}

// provider returns the record of a provider.
func (s *Service) provider(slug string) (*healthdata.Provider, error) {
	p := s.users.Providers().Get(slug)
	if p == nil {
		var bad healthlab.Problems
		bad.Add("unknown", s.users.Providers().Expected(slug), "provider")
		return nil, bad.Err()
	}
	return p, nil
}

// move has the settings and the codec for moving connections of a provider.
type move struct {
	linking.TokenCodec
	provider *healthdata.Provider
	settings linking.TeamSettings
}

// movable returns the settings and the codec for the tokens of a provider, if the team may move its
// connections.
func (s *Service) movable(ctx context.Context, team healthlab.TeamID, slug string) (move, error) {
	settings, err := s.enabled(ctx, team)
	if err != nil {
		return move{}, err
	}
	p, err := s.provider(slug)
	if err != nil {
		return move{}, err
	}
	codec := s.links.TokenCodec(slug)
	if codec == nil || settings.OwnClient(slug) == "" && !slices.Contains(settings.OwnOAuth, slug) {
		return move{}, &healthlab.RuleError{
			Type: RuleOtherCredentials, Msg: "provider: must be an OAuth provider for which the team has its own OAuth client, and whose connector can export and import tokens",
		}
	}
	return move{codec, p, settings}, nil
}
