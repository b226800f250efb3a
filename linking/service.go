package linking

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// Service links accounts of people at providers to users. It is safe for concurrent use.
type Service struct {
	store      Store
	users      *healthdata.Service
	connectors *clientConnectors
	offers     offers
	registry   *ClientRegistry
	seal       healthlab.Sealer
	signer     signer
	opts       Options
	failures   work.FailureLog
}

// Options adjusts a Service. Environment and SigningKeys are required; every other field that is zero means
// its default.
type Options struct {
	// Environment is sandbox or production. Link codes and the URL of the link pages contain it. Required.
	Environment healthlab.Environment
	// SigningKeys sign link tokens: the first key signs new tokens, and tokens of all keys are accepted. Each
	// has at least 32 random bytes. Required.
	SigningKeys [][]byte
	// Region is us or eu. Default us.
	Region string
	// BaseURL is the base URL of the service, without a slash at its end. Callback URLs begin with it, and
	// tokens are valid only for it. Default http://localhost:8080.
	BaseURL string
	// WebURL is the URL of the link pages. Default BaseURL + "/link". The service's own link pages must be on
	// the host of BaseURL, so that a callback receives the cookie of the browser.
	WebURL string
	// AppScheme is the scheme of the URL that opens the companion app. Default healthlab.
	AppScheme string
	// Settings returns the settings of a team. Default: the zero settings for all teams.
	Settings func(context.Context, healthlab.TeamID) (TeamSettings, error)
	// Clients stores the OAuth clients that teams have registered at providers, for [Service.ClientRegistry]. Nil:
	// only the deployment's clients exist. A [CredentialRefresher] needs the same value.
	Clients TeamClients
	// Timeout bounds each call of a connector. Default 45 seconds.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of sessions. Default UUID version 7.
	NewID func() uuid.UUID
	// Random is the source of codes, tokens and verifiers. Default crypto/rand.Reader; set it only in tests.
	Random io.Reader
	// Log receives failures of providers, grants that could not be revoked, tries that could not be recorded, and
	// clients of teams that could not be marked as proven. Default: slog.Default().
	Log *slog.Logger
}

// minSigningKey is the least length of a signing key in bytes.
const minSigningKey = 32

// New returns a Service on a store. users has the users whose accounts are linked, connectors has the connectors by
// provider slug, and seal encrypts credentials. Without connectors, the service makes demo connections only. It returns
// Invalid if another argument or a required option is missing, a key is too short, Region is unknown, or a connector is
// for a provider that is not configured. It starts no goroutine.
func New(store Store, users *healthdata.Service, connectors map[string]ProviderConnector, seal healthlab.Sealer, opts *Options) (*Service, error) {
	if store == nil || users == nil || seal == nil {
		return nil, fmt.Errorf("%w: linking.New: store, users and seal must not be nil", healthlab.Invalid)
	}
	for slug := range connectors {
		if users.Providers().Get(slug) == nil {
			return nil, fmt.Errorf("%w: connectors: the key %q must be the slug of a configured provider", healthlab.Invalid, slug)
		}
	}
	s := &Service{store: store, users: users, seal: seal}
	if opts != nil {
		s.opts = *opts
	}
	if err := s.opts.Environment.Check(); err != nil {
		return nil, err
	}
	if len(s.opts.SigningKeys) == 0 {
		return nil, fmt.Errorf("%w: Options.SigningKeys is required: at least one key of %d random bytes", healthlab.Invalid, minSigningKey)
	}
	for i, k := range s.opts.SigningKeys {
		if len(k) < minSigningKey {
			return nil, fmt.Errorf("%w: Options.SigningKeys[%d] has %d bytes; it must have at least %d", healthlab.Invalid, i, len(k), minSigningKey)
		}
	}
	s.opts.setDefaults()
	s.connectors = newClientConnectors(connectors, s.opts.Clients, seal)
	if s.opts.Region != "us" && s.opts.Region != "eu" {
		return nil, fmt.Errorf("%w: Options.Region must be us or eu", healthlab.Invalid)
	}
	s.offers = offers{providers: users.Providers(), connectors: s.connectors, settings: s.opts.Settings}
	s.registry = &ClientRegistry{connectors: s.connectors, offers: &s.offers, baseURL: s.opts.BaseURL, now: s.now}
	s.signer = signer{keys: slices.Clone(s.opts.SigningKeys), audience: s.opts.BaseURL + "/v2/link", random: s.opts.Random}
	return s, nil
}

func (o *Options) setDefaults() {
	orText := func(s *string, def string) {
		if *s == "" {
			*s = def
		}
	}
	orText(&o.Region, "us")
	orText(&o.BaseURL, "http://localhost:8080")
	orText(&o.WebURL, o.BaseURL+"/link")
	orText(&o.AppScheme, "healthlab")
	if o.Settings == nil {
		o.Settings = func(context.Context, healthlab.TeamID) (TeamSettings, error) { return TeamSettings{}, nil }
	}
	if o.Timeout <= 0 {
		o.Timeout = 45 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// requireUser returns the error missing if the team has no such live user, otherwise nil.
func (s *Service) requireUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, missing error) error {
	ok, err := s.users.HasUser(ctx, team, user)
	if err == nil && !ok {
		err = missing
	}
	return err
}

// Brand returns the name and look of a team's link pages.
func (s *Service) Brand(ctx context.Context, team healthlab.TeamID) (Brand, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return Brand{}, fmt.Errorf("brand: settings: %w", err)
	}
	return settings.Brand, nil
}

// Users returns the users whose accounts are linked.
func (s *Service) Users() *healthdata.Service { return s.users }

// TokenCodec returns the codec for exporting and importing tokens of a provider; nil if its connections cannot
// be moved.
func (s *Service) TokenCodec(provider string) TokenCodec {
	return s.connectors.byProvider[provider].TokenCodec
}

// Settings returns the settings of a team.
func (s *Service) Settings(ctx context.Context, team healthlab.TeamID) (TeamSettings, error) {
	return s.offers.teamSettings(ctx, team)
}

// ClientRegistry returns the registry of the OAuth clients of teams. It is never nil; [ClientRegistry.Enabled] reports
// whether the service has clients of teams.
func (s *Service) ClientRegistry() *ClientRegistry { return s.registry }

// Environment returns the environment of the service.
func (s *Service) Environment() healthlab.Environment { return s.opts.Environment }

// BaseURL returns the base URL of the service.
func (s *Service) BaseURL() string { return s.opts.BaseURL }

// WebURL returns the URL of the link pages.
func (s *Service) WebURL() string { return s.opts.WebURL }
