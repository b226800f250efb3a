package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// healthOperations lists the reads of health data. Each row of the resource catalogue is one route.
func (a api) healthOperations() []server.Operation {
	if a.Health == nil {
		return nil
	}
	ops := []server.Operation{
		{ID: "read_samples_grouped", Pattern: "GET /v2/timeseries/{user_id}/{resource}/grouped", Bound: server.UserInPath, Team: a.readGrouped},
		{ID: "read_samples", Pattern: "GET /v2/timeseries/{user_id}/{resource}", Bound: server.UserInPath, Team: a.readSamples},
		{ID: "read_workout_stream", Pattern: "GET /v2/timeseries/workouts/{workout_id}/stream", Bound: server.OwnedID("workout_id", a.Health.WorkoutStreamUser), Team: server.ReadOne(workoutID, a.Health.WorkoutStream)},
		{ID: "read_sleep_stream", Pattern: "GET /v2/timeseries/sleep/{sleep_id}/stream", Bound: server.OwnedID("sleep_id", a.Health.SleepStreamUser), Team: server.ReadOne(sleepID, a.Health.SleepStream)},
		{ID: "read_devices_raw", Pattern: "GET /v2/summary/devices/{user_id}/raw", Bound: server.UserInPath, Team: server.AsJSON(a.readDevicesRaw)},
	}
	// One path for each kind, because a path parameter would also match /grouped.
	for _, kind := range healthdata.ResourceBySlug("cholesterol").Types {
		ops = append(ops, server.Operation{
			ID: "read_" + strings.ReplaceAll(kind, "/", "_"), Pattern: "GET /v2/timeseries/{user_id}/" + kind, Bound: server.UserInPath, Team: a.readCholesterol(kind),
		})
	}
	for _, r := range healthdata.Summaries() {
		read := a.readSummaries(r)
		if r.Slug == "profile" {
			read = server.AsJSON(a.readProfile)
		}
		ops = append(ops, server.Operation{ID: "read_" + r.Slug, Pattern: "GET /v2/summary/" + r.Path + "/{user_id}", Bound: server.UserInPath, Team: read})
		if r.Raw {
			ops = append(ops, server.Operation{
				ID: "read_" + r.Slug + "_raw", Pattern: "GET /v2/summary/" + r.Path + "/{user_id}/raw", Bound: server.UserInPath, Team: a.readRaw(r),
			})
		}
	}
	return ops
}

func userID(in *wire.In) healthlab.UserID { return healthlab.UserID{UUID: in.PathUUID("user_id")} }

// span reads start_date, end_date and time_zone. Each date is a day or an instant. A day is a local day of each
// item, or a day of time_zone if it is given. A time without an offset is a time in time_zone, and is refused
// without it.
func span(in *wire.In) (from, to time.Time, days healthdata.DayRange) {
	zone := in.OptZone("time_zone")
	start := in.Moment("start_date", zone)
	end := in.OptMoment("end_date", zone)
	switch {
	case !start.IsDay:
		from = start.Instant.Time
	case zone != nil:
		from = start.Day.At(zone)
	default:
		days.From = start.Day
	}
	switch {
	case end == nil:
	case !end.IsDay:
		to = end.Instant.Time
	case zone != nil:
		to = end.Day.AddDays(1).At(zone).Add(-time.Microsecond)
	default:
		days.To = end.Day
	}
	return from, to, days
}

// daySpan reads start_date and end_date for resources that are read by day only.
func daySpan(in *wire.In) (from, to time.Time) {
	from = in.Date("start_date").At(time.UTC)
	if d := in.OptDate("end_date"); d != nil {
		to = d.AddDays(1).At(time.UTC).Add(-time.Microsecond)
	}
	return from, to
}

func providerFilter(in *wire.In) string {
	if p := in.OptText("provider", 256); p != nil {
		return *p
	}
	return ""
}

func (a api) readSummaries(res *healthdata.Resource) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		in := wire.From(r)
		user := userID(in)
		q := healthdata.SummaryQuery{Resource: res.Slug, Provider: providerFilter(in)}
		if res.DatesOnly {
			q.From, q.To = daySpan(in)
		} else {
			q.From, q.To, q.Days = span(in)
		}
		if err := in.Err(); err != nil {
			return err
		}
		list, err := a.Health.Summaries(r.Context(), team, user, q)
		if err != nil {
			return err
		}
		return wire.JSON(w, http.StatusOK, map[string][]healthdata.Summary{res.ReadKey: list})
	}
}

func (a api) readProfile(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user, provider := userID(in), providerFilter(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Health.Profile(ctx, team, user, provider)
}

// resourceAt returns the resource with a path among those in of. If there is none, the error names similar paths.
func resourceAt(path string, of []*healthdata.Resource) (*healthdata.Resource, error) {
	if res := healthdata.ResourceByPath(path); res != nil && slices.Contains(of, res) {
		return res, nil
	}
	known := make([]string, len(of))
	for i, r := range of {
		known[i] = r.Path
	}
	near := healthdata.NearestNames(path, known)
	return nil, &wire.Fault{Status: http.StatusNotFound, Type: "NOT_FOUND", Msg: "resource not found; the nearest names are " + near}
}

// sampleQuery reads the parameters that all reads of samples share. If no resource in of has the path, it reports
// that together with the other problems.
func sampleQuery(in *wire.In, path string, of []*healthdata.Resource) (q healthdata.SampleQuery, err error) {
	q.Provider = providerFilter(in)
	q.From, q.To, q.Days = span(in)
	if err := in.Err(); err != nil {
		return q, err
	}
	res, err := resourceAt(path, of)
	if err != nil {
		return q, err
	}
	q.Resource = res.Slug
	return q, nil
}

func ungrouped() []*healthdata.Resource {
	return slices.DeleteFunc(healthdata.Timeseries(), func(r *healthdata.Resource) bool { return !r.Legacy })
}

func (a api) readGrouped(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := userID(in)
	// cursor is the deprecated name of next_cursor. If both are present, next_cursor counts.
	cursor := ""
	for _, name := range [...]string{"cursor", "next_cursor"} {
		if c := in.OptText(name, maxCursor); c != nil && *c != "" {
			cursor = *c
		}
	}
	q, err := sampleQuery(in, in.PathText("resource", 256), healthdata.Timeseries())
	if err != nil {
		return err
	}
	q.Cursor = cursor
	page, err := a.Health.Samples(r.Context(), team, user, q)
	if err != nil {
		return err
	}
	return wire.Stream(w, http.StatusOK, func(p *wire.Pieces) error { return appendPage(p, &page) })
}

// maxCursor is the largest length of a cursor: two texts of 256 bytes, escaped.
const maxCursor = 8192

// appendPage writes a page of samples: groups by provider, and the cursor as next and as next_cursor.
func appendPage(p *wire.Pieces, page *healthdata.SamplePage) error {
	p.B = append(p.B, `{"groups":{`...)
	for i := range page.Groups {
		g := &page.Groups[i]
		if i == 0 || g.Source.Provider != page.Groups[i-1].Source.Provider {
			if i > 0 {
				p.B = append(p.B, ']', ',')
			}
			p.B = append(appendText(p.B, g.Source.Provider), ':', '[')
		} else {
			p.B = append(p.B, ',')
		}
		p.B = g.AppendJSON(p.B)
		if err := p.Next(); err != nil {
			return err
		}
	}
	if len(page.Groups) > 0 {
		p.B = append(p.B, ']')
	}
	for _, key := range [...]string{`},"next_cursor":`, `,"next":`} {
		p.B = append(p.B, key...)
		if page.Next == "" {
			p.B = append(p.B, "null"...)
		} else {
			p.B = appendText(p.B, page.Next)
		}
	}
	p.B = append(p.B, '}')
	return nil
}

// appendText writes a JSON string.
func appendText(b []byte, s string) []byte {
	j, err := json.Marshal(s)
	if err != nil {
		panic("httpapi: a text does not marshal")
	}
	return append(b, j...)
}

func (a api) readSamples(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := userID(in)
	q, err := sampleQuery(in, in.PathText("resource", 256), ungrouped())
	if err != nil {
		return err
	}
	return a.answerSamples(w, r, team, user, q)
}

// readCholesterol returns a handler that answers with the cholesterol samples of one kind, such as cholesterol/ldl.
func (a api) readCholesterol(kind string) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		in := wire.From(r)
		user := userID(in)
		q, err := sampleQuery(in, "cholesterol", ungrouped())
		if err != nil {
			return err
		}
		q.Type = kind
		return a.answerSamples(w, r, team, user, q)
	}
}

func (a api) answerSamples(w http.ResponseWriter, r *http.Request, team healthlab.TeamID, user healthlab.UserID, q healthdata.SampleQuery) error {
	res := healthdata.ResourceBySlug(q.Resource)
	samples, err := a.Health.AllSamples(r.Context(), team, user, q)
	if err != nil {
		return err
	}
	return wire.Stream(w, http.StatusOK, func(p *wire.Pieces) error {
		p.B = append(p.B, '[')
		for i := range samples {
			if i > 0 {
				p.B = append(p.B, ',')
			}
			p.B = res.AppendSample(p.B, &samples[i])
			if err := p.Next(); err != nil {
				return err
			}
		}
		p.B = append(p.B, ']')
		return nil
	})
}

func workoutID(in *wire.In) uuid.UUID { return in.PathUUID("workout_id") }

func sleepID(in *wire.In) uuid.UUID { return in.PathUUID("sleep_id") }

// rawItem is an item as the provider sent it. The resource decides which of Timestamp, ProviderID, PriorityID,
// Priority, SportID and Sport are set.
type rawItem struct {
	ID             uuid.UUID               `json:"id"`
	Timestamp      *healthlab.Time         `json:"timestamp,omitempty"`
	Data           any                     `json:"data"`
	UserID         healthlab.UserID        `json:"user_id"`
	ProviderID     string                  `json:"provider_id,omitempty"`
	SourceID       int                     `json:"source_id"`
	SourceDeviceID *uuid.UUID              `json:"source_device_id"`
	CreatedAt      healthlab.Time          `json:"created_at"`
	UpdatedAt      healthlab.Time          `json:"updated_at"`
	Source         healthdata.ProviderName `json:"source"`
	PriorityID     *int                    `json:"priority_id"`
	Priority       wire.Opt[int]           `json:"priority,omitzero"`
	SportID        *int                    `json:"sport_id,omitempty"`
	Sport          *healthdata.Sport       `json:"sport,omitempty"`
}

func rawOut(user healthlab.UserID, resource string, r healthdata.RawRecord) rawItem {
	at := healthlab.At(r.At)
	out := rawItem{
		ID: r.ID, Timestamp: &at, Data: r.Data, UserID: user, ProviderID: r.ProviderID,
		SourceID:       healthdata.SourceNumber(r.Source.Provider),
		SourceDeviceID: r.Source.DeviceID,
		Source:         healthdata.ProviderName{Name: r.Source.Name, Slug: r.Source.Slug, Logo: r.Source.Logo},
		CreatedAt:      r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	switch resource {
	case "activity":
		out.PriorityID = new(int)
	case "workouts":
		out.SportID, out.Sport = &r.Sport.ID, &r.Sport
	case "device":
		out.Timestamp = nil
	case "profile":
		out.Timestamp, out.ProviderID = nil, ""
	default:
		out.Priority = wire.Opt[int]{Set: true, Null: true}
	}
	return out
}

func (a api) readRaw(res *healthdata.Resource) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		in := wire.From(r)
		user := userID(in)
		q := healthdata.SummaryQuery{Resource: res.Slug, Provider: providerFilter(in)}
		if res.Slug != "profile" {
			q.From, q.To, q.Days = span(in)
		}
		if err := in.Err(); err != nil {
			return err
		}
		if res.Slug == "profile" {
			raw, err := a.Health.RawProfile(r.Context(), team, user, q.Provider)
			if err != nil {
				return err
			}
			return wire.JSON(w, http.StatusOK, map[string]rawItem{"profile": rawOut(user, res.Slug, raw)})
		}
		list, err := a.Health.RawSummaries(r.Context(), team, user, q)
		if err != nil {
			return err
		}
		items := make([]rawItem, len(list))
		for i := range list {
			items[i] = rawOut(user, res.Slug, list[i])
		}
		return wire.JSON(w, http.StatusOK, map[string][]rawItem{res.ReadKey: items})
	}
}

// readDevicesRaw answers with the payloads that providers have sent about a user's devices.
func (a api) readDevicesRaw(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user := userID(in)
	provider := providerFilter(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	list, err := a.Health.RawDevices(ctx, team, user, provider)
	if err != nil {
		return nil, err
	}
	items := make([]rawItem, len(list))
	for i := range list {
		items[i] = rawOut(user, "device", list[i])
	}
	return map[string][]rawItem{"devices": items}, nil
}
