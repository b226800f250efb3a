package healthdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Service creates users, stores their uploads and reads their data. Sources are connected by [Connections], and users
// deleted by [Deletions]. It is safe for concurrent use.
type Service struct {
	users     liveUsers
	data      Data
	providers *Providers
	opts      Options
}

// Options adjusts a Service. Environment is required; every other field that is zero means its default.
type Options struct {
	// Environment is sandbox or production. Required.
	Environment healthlab.Environment
	// MaxUsers is how many users a team may have. Default [SandboxUsers] in a sandbox, no
	// limit in production.
	MaxUsers int
	// Settings returns the settings of a team. Default: the zero settings for all teams.
	Settings func(context.Context, healthlab.TeamID) (TeamSettings, error)
	// Preference returns a team's preferences: a number by slug of provider. Of several profiles of a user, the one
	// whose provider has the greatest number is read. A provider without a number has 0. Default: none.
	Preference func(context.Context, healthlab.TeamID) (map[string]int, error)
	// Floating decides how times without a zone are read. Default FloatingNormalise.
	Floating FloatingMode
	// PageSize is how many samples a page of a read holds. Default 5,000.
	PageSize int
	// BatchSamples and BatchBytes bound one timeseries event. Defaults 5,000 samples
	// and 1,000,000 bytes of payload, which leaves room for the envelope under 1 MiB.
	BatchSamples, BatchBytes int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of rows and events. Default UUID version 7.
	NewID func() uuid.UUID
	// NewUserID makes ids of users. Default UUID version 4.
	NewUserID func() uuid.UUID
	// GracePeriod is how long the deletion of a user can be undone. Default [GracePeriod]. Below zero a deletion
	// cannot be undone, and [Deletions.Run] erases the user within seconds.
	GracePeriod time.Duration
	// BeforeDelete is called before a user is deleted, to cancel the user's lab orders, for example. Each may be
	// called again for the same user; an error leaves the user live. Its context may carry a transaction of the
	// store, so it must do nothing outside of the store. Default: none.
	BeforeDelete []func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error
	// Forget is called before a user is erased for good, to delete the user's data outside of the store, such as files.
	// Each may be called again for the same user. After an error the erasure is tried again later. Default: none.
	Forget []func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error
	// BeforeUpload is called at the start of an upload. In a transaction it may read in one query the rows that
	// the upload will need. An error ends the upload. Default: none.
	BeforeUpload func(context.Context, UploadStart) error
	// Uploaded is called with the counts of an upload after its samples or summaries were stored. Use
	// pull.Service.CountUpload to show the counts. An error is only logged. Its context may carry the
	// transaction of the upload, so it must do nothing outside of the store. Default: none.
	Uploaded func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider, resource string, got Received) error
	// Log receives what an operator should see. Default: slog.Default().
	Log *slog.Logger
}

// TeamSettings are the settings of a team.
type TeamSettings struct {
	// VerbMode decides the verbs of health data events. Default VerbUpsert.
	VerbMode VerbMode
	// PushHistoricalData sends events for backfilled data too.
	PushHistoricalData bool
	// ProviderRawData stores the payloads of providers, so that the team can read them.
	ProviderRawData bool
	// DevicesApart stores activity samples of on-device stores in one series for each device. Two devices that recorded
	// the same moment then do not replace each other, and sums contain both. Earlier data stays unchanged.
	DevicesApart bool
	// ExplicitConnect refuses uploads from an on-device store that is not connected. Without it an upload
	// connects the store.
	ExplicitConnect bool
}

// VerbMode decides the verbs of health data events.
type VerbMode string

const (
	// VerbUpsert sends every creation and change with the verb created. It is the default, also as the empty
	// string.
	VerbUpsert VerbMode = "upsert"
	// VerbSplit sends new data with the verb created and later changes with updated. A batch with at least one
	// new sample is created.
	VerbSplit VerbMode = "split"
)

// FloatingMode decides how times without a zone are read.
type FloatingMode string

const (
	// FloatingNormalise reads times without a zone in the user's fallback zone. It is the default, also as the
	// empty string.
	FloatingNormalise FloatingMode = "normalise"
	// FloatingVerbatim reads times without a zone as UTC, with offset 0.
	FloatingVerbatim FloatingMode = "verbatim"
)

// New returns a Service on its stores and the configured providers. It returns healthlab.Invalid if one of the
// three is nil. It starts no goroutine.
func New(users Users, data Data, providers *Providers, opts *Options) (*Service, error) {
	if users == nil || data == nil || providers == nil {
		return nil, fmt.Errorf("%w: users, data and providers must not be nil", healthlab.Invalid)
	}
	s := &Service{users: liveUsers{users}, data: data, providers: providers}
	if opts != nil {
		s.opts = *opts
	}
	o := &s.opts
	if err := o.Environment.Check(); err != nil {
		return nil, err
	}
	if o.MaxUsers == 0 && o.Environment == healthlab.Sandbox {
		o.MaxUsers = SandboxUsers
	}
	if o.Settings == nil {
		o.Settings = func(context.Context, healthlab.TeamID) (TeamSettings, error) { return TeamSettings{}, nil }
	}
	if o.Preference == nil {
		o.Preference = func(context.Context, healthlab.TeamID) (map[string]int, error) { return nil, nil }
	}
	if o.GracePeriod == 0 {
		o.GracePeriod = GracePeriod
	}
	o.GracePeriod = max(o.GracePeriod, 0)
	if o.PageSize <= 0 {
		o.PageSize = 5000
	}
	if o.BatchSamples <= 0 {
		o.BatchSamples = 5000
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = 1_000_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if o.NewUserID == nil {
		o.NewUserID = uuid.New
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return s, nil
}

func (o *Options) now() healthlab.Time { return healthlab.At(o.Now()) }

// Providers returns the configured providers.
func (s *Service) Providers() *Providers { return s.providers }

// HasUser reports whether the team has this user and the user is not deleted.
func (s *Service) HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error) {
	_, err := s.users.live(ctx, team, id)
	if errors.Is(err, healthlab.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// liveUsers is a store of users whose methods live and updateLive read and change only users who have not been deleted.
// The methods of Users itself also find deleted users.
type liveUsers struct{ Users }

// live returns a user. It returns healthlab.NotFound if the user does not exist or is deleted.
func (s liveUsers) live(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (User, error) {
	u, err := s.Get(ctx, team, id)
	if err != nil {
		return User{}, err
	}
	if !u.Live() {
		return User{}, noUser()
	}
	return u, nil
}

// updateLive changes a user as [Users].Update does. It returns healthlab.NotFound for a deleted user.
func (s liveUsers) updateLive(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*User) ([]healthlab.Event, error),
) (User, error) {
	return s.Update(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		if !u.Live() {
			return nil, noUser()
		}
		return change(u)
	})
}

func (p *Providers) present(u User) User {
	u.ConnectedSources = p.connectedSources(u.Connections)
	return u
}

func (p *Providers) presentAll(users []User) []User {
	out := make([]User, len(users))
	for i, u := range users {
		out[i] = p.present(u)
	}
	return slices.Clip(out)
}

// connectedSources returns a user's connections without the removed ones, oldest first.
func (p *Providers) connectedSources(connections []Connection) []ConnectedSource {
	out := []ConnectedSource{}
	for _, c := range connections {
		if c.Status == Deregistered {
			continue
		}
		name := p.name(c.Provider)
		out = append(out, ConnectedSource{CreatedOn: healthlab.At(c.CreatedOn), Source: name, Provider: name})
	}
	slices.SortFunc(out, func(a, b ConnectedSource) int {
		return cmp.Or(a.CreatedOn.Compare(b.CreatedOn.Time), cmp.Compare(a.Source.Slug, b.Source.Slug))
	})
	return out
}

// errUnchanged ends an update that has nothing to write.
var errUnchanged = errors.New("nothing to change")

// View calls read with a consistent view of one user's stored data, for queries of other packages. read may run more
// than once, as [Data] says. The view is used by one goroutine at a time and not after read returns; what it returns is
// shared and must not be changed. The error of the last run is returned unchanged. It returns healthlab.NotFound if the
// team has no such user, or the user is deleted.
func (s *Service) View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(View) error) error {
	if _, err := s.users.live(ctx, team, user); err != nil {
		return fmt.Errorf("look at data: %w", err)
	}
	return s.data.View(ctx, team, user, read)
}
