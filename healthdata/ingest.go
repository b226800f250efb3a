package healthdata

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// futureLimit is how far a timestamp may be ahead of the service's clock.
const futureLimit = 24 * time.Hour

// intake is an accepted upload with the data that is needed to read its items.
type intake struct {
	Upload
	team     healthlab.TeamID
	user     User
	provider *Provider
	resource *Resource
	clock    clock
	now      healthlab.Time
	settings TeamSettings
	origin   Origin // the app and device that the sender named

	data      Data
	providers *Providers
	opts      *Options
}

// admit checks the fields of an upload other than its items: the user exists, the provider is configured and connected,
// and the source is valid. It connects an on-device store with autoConnect, and sets Source.WorkoutID and
// Source.DeviceID.
func (s *Service) admit(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, up Upload, r *Resource) (*intake, error) {
	now := s.opts.now()
	u, err := s.users.live(ctx, team, id)
	if err != nil {
		return nil, err
	}
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("settings of the team: %w", err)
	}
	if up.Stage == "" {
		up.Stage = StageDaily
	}
	if up.Source.Type == "" {
		up.Source.Type = SourceUnknown
	}
	var p healthlab.Problems
	provider := s.providers.Get(up.Provider)
	if provider == nil {
		p.Add("unknown_provider", s.providers.Expected(up.Provider), "provider")
	}
	oneOf(&p, up.Stage, []Stage{StageDaily, StageHistorical}, "stage")
	if up.Device != nil {
		up.Device.check(&p)
		device := up.device(team, id).ID
		up.Source.DeviceID = &device
	}
	if check.Optional(&p, up.Workout, "source", "workout"); up.Workout != nil && *up.Workout != "" && r.Key == KeyWorkout {
		of := SummaryID(team, id, up.Provider, up.Source.Type, "workouts", up.Source.recordKey(provider, *up.Workout))
		up.Source.WorkoutID = &of
	}
	checkSource(&p, &up.Source, r)
	if up.TimeZone != "" {
		if _, err := check.LoadZone(up.TimeZone); err != nil {
			p.Add("unknown_zone", "must be a zone of the IANA time zone database, such as Europe/Vienna or UTC", "time_zone")
		}
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	if c := u.Connection(up.Provider); c == nil || c.Status != Connected {
		if err := u.checkConsent(up.Provider); err != nil {
			return nil, err
		}
		if u, err = s.autoConnect(ctx, team, id, provider, settings); err != nil {
			return nil, err
		}
	}
	up.Source.Provider, up.Source.Slug = up.Provider, up.Provider
	up.Source.Name, up.Source.Logo = "", ""
	c := s.clockOf(&u, provider, r.Slug)
	if up.TimeZone != "" {
		c.loc, _ = check.LoadZone(up.TimeZone)
	}
	in := &intake{
		Upload: up, team: team, user: u, provider: provider, resource: r,
		clock: c, now: now, settings: settings, data: s.data, providers: s.providers, opts: &s.opts,
	}
	in.origin = Origin{App: deref(in.Source.AppID)}
	if in.Source.DeviceID != nil {
		in.origin.Device = *in.Source.DeviceID
	} else {
		if in.Source.DeviceID, err = in.onlyDevice(ctx); err != nil {
			return nil, fmt.Errorf("devices of the user: %w", err)
		}
	}
	return in, nil
}

// autoConnect connects the on-device store p and returns the user. It returns a RuleError of type [RuleNoConnection] if
// p is another kind of provider, or if the team requires an explicit connection.
func (s *Service) autoConnect(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, p *Provider, settings TeamSettings) (User, error) {
	switch {
	case p.Class != classStore:
		return User{}, &healthlab.RuleError{Type: RuleNoConnection, Msg: "the user has not connected " + p.Slug + "; connect or link it first"}
	case settings.ExplicitConnect:
		return User{}, &healthlab.RuleError{
			Type: RuleNoConnection, Msg: "the user has not connected " + p.Slug + ", and the team's setting explicit_connect is on: connect it first",
		}
	}
	if _, err := s.Connections().Connect(ctx, team, id, NewConnection{Provider: p.Slug}); err != nil {
		return User{}, err
	}
	return s.users.live(ctx, team, id)
}

func checkSource(p *healthlab.Problems, src *Source, r *Resource) {
	check.Text(p, string(src.Type), check.MaxName, "source", "type")
	check.Optional(p, src.AppID, "source", "app_id")
	check.Optional(p, src.Sport, "source", "sport")
	if r.Key == KeyWorkout {
		if src.WorkoutID == nil {
			p.Add("missing", "must be set: the id of the workout that the samples belong to", "source", "workout_id")
		}
		if src.Sport == nil || *src.Sport == "" {
			p.Add("missing", "must be set: the slug of the workout's sport, such as running", "source", "sport")
		}
	}
}

func (in *intake) emitsEvents() bool {
	return in.resource.Events && (in.Stage == StageDaily || in.settings.PushHistoricalData)
}

func (in *intake) checkFuture(p *healthlab.Problems, t healthlab.Time, path ...any) {
	if t.After(in.now.Add(futureLimit)) {
		p.Add(check.CodeFuture, "must be at most 24 hours ahead of the present", path...)
	}
}

// event returns an event about data of this upload. Its verb follows the team's VerbMode and the outcome.
func (in *intake) event(outcome PutOutcome, key string, data []byte) healthlab.Event {
	verb := verbCreated
	if in.settings.VerbMode == VerbSplit && outcome == PutChanged {
		verb = verbUpdated
	}
	return healthlab.Event{
		ID: in.opts.NewID(), Type: dailyEvent(in.resource.Slug, verb), Team: in.team, User: in.user.ID,
		Key: key, At: in.now.Time, Data: data,
	}
}

// reportUpload calls Options.Uploaded with the result of an upload.
func (in *intake) reportUpload(ctx context.Context, got *Received) {
	if in.opts.Uploaded == nil {
		return
	}
	if err := in.opts.Uploaded(ctx, in.team, in.user.ID, in.Provider, in.resource.Slug, *got); err != nil {
		in.opts.Log.WarnContext(ctx, "upload not counted", "user", in.user.ID, "resource", in.resource.Slug, "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
	}
}

// device returns the device of an upload. Its id is derived from the source's description, so that every upload of the
// device has the same id.
func (u *Upload) device(team healthlab.TeamID, user healthlab.UserID) Device {
	d, src := u.Device, &u.Source
	key := "id\x00" + deref(d.ID)
	if deref(d.ID) == "" {
		key = "model\x00" + deref(src.AppID) + "\x00" + deref(d.Manufacturer) + "\x00" + deref(d.Model)
	}
	out := Device{
		UserID: user, Provider: u.Provider, SourceType: src.Type, AppID: src.AppID,
		Manufacturer: d.Manufacturer, Model: d.Model, Version: d.Version, DeviceID: d.ID,
	}
	kind := src.Type
	if deref(d.ID) != "" {
		kind = ""
	}
	out.ID = SummaryID(team, user, u.Provider, kind, deviceSlug, key)
	return out
}

// onlyDevice returns the id of the only device that is known for the provider, for data without a device. It returns
// nil if no device or several are known, or if the source types of the device and of the data are known and differ. It
// also returns nil for an on-device store and for the team's own data, because that data may come from unknown devices.
func (in *intake) onlyDevice(ctx context.Context) (*uuid.UUID, error) {
	if in.provider.collectsDevices() {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	known, err := readDevices(ctx, in.data, in.team, in.user.ID, uuid.Nil)
	if err != nil {
		return nil, err
	}
	known = slices.DeleteFunc(known, func(d knownDevice) bool { return d.Provider != in.Provider })
	if len(known) != 1 {
		return nil, nil //nolint:nilnil // as above
	}
	if is, says := known[0].SourceType, in.Source.Type; is != says && is != SourceUnknown && says != SourceUnknown {
		return nil, nil //nolint:nilnil // as above
	}
	return &known[0].ID, nil
}
