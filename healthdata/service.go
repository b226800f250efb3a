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

// Service is health data as a host calls it: users, sources, ingestion and reads. It
// is safe for concurrent use.
type Service struct {
	users     Users
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
	// Settings returns the settings of a team. Default: the zero settings for all.
	Settings func(context.Context, healthlab.TeamID) (TeamSettings, error)
	// Preference returns a team's numbers for providers, the larger the better: of several
	// profiles the one of the best provider counts. A provider without one has 0. Default:
	// none.
	Preference func(context.Context, healthlab.TeamID) (map[string]int, error)
	// Floating says what to do with clock digits that have no zone. Default
	// FloatingNormalise.
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
	// GracePeriod is how long the deletion of a user can be undone. Default
	// [GracePeriod]; below zero: not at all, and
	// [Service.Run] erases the user within seconds.
	GracePeriod time.Duration
	// BeforeDelete is called before a user is deleted, to call off what others do for the
	// user: lab orders. Each may be called again for the same user; an error leaves the
	// user live. Its context may carry a transaction of the store, so it must do nothing outside of
	// the store. Default: none.
	BeforeDelete []func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error
	// Forget is called before a user is erased for good, for what is kept about it
	// outside the store: files. Each may be called again for the same user; an error
	// puts the erasure off. Default: none.
	Forget []func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error
	// BeforeUpload is called at the begin of an upload. In a transaction it may read at once what the
	// upload, and what is called after it, will read. Its error ends the upload. Default: none.
	BeforeUpload func(context.Context, UploadStart) error
	// Uploaded is called with what became of uploaded samples and summaries, after
	// they were stored; best pull.Service.CountUpload, so that people can look at it. Its
	// error changes nothing, and is logged. Its context may carry the transaction of the upload, so it
	// must do nothing outside of the store. Default: none.
	Uploaded func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider, resource string, got Received) error
	// Log receives what a person should look at. Default: slog.Default().
	Log *slog.Logger
}

// TeamSettings are the choices of a team.
type TeamSettings struct {
	// VerbMode says how changes of health data are announced. Default VerbUpsert.
	VerbMode VerbMode
	// PushHistoricalData sends events for backfilled data too.
	PushHistoricalData bool
	// ProviderRawData keeps the payloads of providers and serves them.
	ProviderRawData bool
	// DevicesApart keeps samples of activity that on-device stores upload apart by device:
	// then two devices that recorded the same moment do not replace each other, and sums
	// have what both counted. What came before stays as it is.
	DevicesApart bool
	// ExplicitConnect refuses uploads from an on-device store that is not connected. Without
	// it an upload connects the store again, or for the first time.
	ExplicitConnect bool
}

// VerbMode says how changes of health data are announced.
type VerbMode string

const (
	// VerbUpsert announces every creation and change with the verb created. It is
	// the default, also as the empty string.
	VerbUpsert VerbMode = "upsert"
	// VerbSplit announces the first sight with created and later changes with
	// updated. A batch of samples with at least one new key is created.
	VerbSplit VerbMode = "split"
)

// FloatingMode says what becomes of clock digits without a zone.
type FloatingMode string

const (
	// FloatingNormalise reads them in the user's fallback zone. It is the default,
	// also as the empty string.
	FloatingNormalise FloatingMode = "normalise"
	// FloatingVerbatim passes them on as if they were UTC, with offset 0.
	FloatingVerbatim FloatingMode = "verbatim"
)

// New returns a Service on its stores and the configured providers. All three are
// required; without one it returns healthlab.Invalid. It starts nothing.
func New(users Users, data Data, providers *Providers, opts *Options) (*Service, error) {
	if users == nil || data == nil || providers == nil {
		return nil, fmt.Errorf("%w: a service needs users, data and providers", healthlab.Invalid)
	}
	s := &Service{users: users, data: data, providers: providers}
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

func (s *Service) now() healthlab.Time { return healthlab.At(s.opts.Now()) }

// Providers returns the configured providers.
func (s *Service) Providers() *Providers { return s.providers }

// HasUser reports whether the team has this user, alive. It is how other packages ask
// whom something belongs to.
func (s *Service) HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error) {
	_, err := s.live(ctx, team, id)
	if errors.Is(err, healthlab.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// live returns a user that has not been deleted, as it is stored.
func (s *Service) live(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (User, error) {
	u, err := s.users.Get(ctx, team, id)
	if err != nil {
		return User{}, err
	}
	if !u.Live() {
		return User{}, healthlab.NotFound
	}
	return u, nil
}

// updateLive changes a user who has not been deleted.
func (s *Service) updateLive(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*User) ([]healthlab.Event, error),
) (User, error) {
	return s.users.Update(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		if !u.Live() {
			return nil, healthlab.NotFound
		}
		return change(u)
	})
}

func (s *Service) present(u User) User {
	u.ConnectedSources = s.connectedSources(u.Connections)
	return u
}

func (s *Service) presentAll(users []User) []User {
	out := make([]User, len(users))
	for i, u := range users {
		out[i] = s.present(u)
	}
	return slices.Clip(out)
}

// connectedSources says which of a user's connections are there to be seen: all but
// the removed ones, the oldest first.
func (s *Service) connectedSources(connections []Connection) []ConnectedSource {
	out := []ConnectedSource{}
	for _, c := range connections {
		if c.Status == Deregistered {
			continue
		}
		name := s.providers.name(c.Provider)
		out = append(out, ConnectedSource{CreatedOn: healthlab.At(c.CreatedOn), Source: name, Provider: name})
	}
	slices.SortFunc(out, func(a, b ConnectedSource) int {
		return cmp.Or(a.CreatedOn.Compare(b.CreatedOn.Time), cmp.Compare(a.Source.Slug, b.Source.Slug))
	})
	return out
}

// errUnchanged ends an update that has nothing to write.
var errUnchanged = errors.New("nothing to change")

// View calls read with a consistent view of one user's data, as it is stored, for
// packages that put questions to it. read may run more than once, as [Data] says. The view is
// used by one goroutine at a time and not after read returns; what it returns is shared and must
// not be changed. The error of the last run is returned unchanged. healthlab.NotFound without
// such a live user.
func (s *Service) View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(View) error) error {
	if _, err := s.live(ctx, team, user); err != nil {
		return fmt.Errorf("look at data: %w", err)
	}
	return s.data.View(ctx, team, user, read)
}
