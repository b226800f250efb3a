package healthdata

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// SummaryQuery selects summaries of a resource. A zero filter matches all.
type SummaryQuery struct {
	// Resource is the slug of a summary.
	Resource string
	// From and To bound the index time of the resource, both inclusive: the local day of activity, the end of a
	// sleep, the start of a workout or of an electrocardiogram, the end of a sleep cycle, the instant of a
	// measurement or a meal, the start of a period. A local day is compared with the days of From and To,
	// without their time of day.
	From, To time.Time
	// Days bounds the local day of the index time.
	Days DayRange
	// Provider selects the summaries of one provider; empty selects all. A provider that is not configured has no
	// summaries.
	Provider string
}

// dayIndexed are the resources whose index is a calendar day.
var dayIndexed = map[string]bool{"activity": true, "menstrual_cycle": true}

// record converts the query to the store's [RecordQuery].
func (q SummaryQuery) record() (RecordQuery, error) {
	r, err := resourceOf(q.Resource, ClassSummary)
	if err != nil {
		return RecordQuery{}, err
	}
	if err := checkRange(q.From, q.To); err != nil {
		return RecordQuery{}, err
	}
	if err := q.Days.check(); err != nil {
		return RecordQuery{}, err
	}
	out := RecordQuery{Resource: r.Slug, From: q.From, To: q.To, Provider: q.Provider}
	if dayIndexed[r.Slug] {
		if !q.From.IsZero() {
			out.From = healthlab.DateOf(q.From.UTC()).At(time.UTC)
		}
		if !q.To.IsZero() {
			out.To = healthlab.DateOf(q.To.UTC()).At(time.UTC)
		}
	}
	out.From, out.To = q.Days.narrow(out.From, out.To)
	return out, nil
}

// Summaries returns the summaries of the query by index time, then id. Summaries of different sources are never
// merged. Sessions that are covered by another one of the same app and device are left out.
//
// Errors: healthlab.NotFound without such a user or resource, healthlab.Invalid for a
// range that ends before it begins.
func (s *Service) Summaries(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, q SummaryQuery) ([]Summary, error) {
	records, err := s.records(ctx, team, user, q, false)
	if err != nil {
		return nil, fmt.Errorf("read summaries: %w", err)
	}
	out := make([]Summary, len(records))
	for i := range records {
		if out[i], err = s.providers.decode(&records[i]); err != nil {
			return nil, fmt.Errorf("read summaries: %w", err)
		}
	}
	return out, nil
}

func (s *Service) records(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, q SummaryQuery, raw bool) (records []Record, err error) {
	rq, wrong := q.record()
	rq.Raw = raw
	if wrong == nil {
		ctx = store.Ahead(ctx, func() []store.Query { return rq.Queries(team, user) })
	}
	if _, err = s.users.live(ctx, team, user); err != nil {
		return nil, err
	}
	if wrong != nil {
		return nil, wrong
	}
	err = s.data.View(ctx, team, user, func(v View) error {
		records, err = v.Records(ctx, rq)
		return err
	})
	records = slices.DeleteFunc(records, func(r Record) bool {
		if r.CoveredBy != uuid.Nil {
			return true
		}
		offset := r.Offset
		if dayIndexed[r.Resource] {
			offset = 0 // the index is a local day
		}
		return !q.Days.contains(r.Index, offset)
	})
	return records, err
}

// Decode returns the summary that a record holds, with the times and the source of
// the record, for callers who read records from a [View]. The names and logos of
// providers are not filled in.
func (r *Record) Decode() (Summary, error) {
	res := ResourceBySlug(r.Resource)
	if res == nil || res.New == nil {
		return nil, fmt.Errorf("%w: a record of a resource that is no summary", healthlab.Unknown)
	}
	out := res.New()
	if err := decodeRecord(r.Doc, out); err != nil {
		return nil, err
	}
	out.head().CreatedAt, out.head().UpdatedAt = healthlab.At(r.CreatedAt), healthlab.At(r.UpdatedAt)
	r.fillOffsets(out)
	return out, nil
}

// fillOffsets sets the record's offset on a summary without offsets: older documents of some resources have no
// field for them.
func (r *Record) fillOffsets(item Summary) {
	own := func() *int { return new(r.Offset) }
	if offset, _ := item.zone(); offset != nil && *offset == nil {
		*offset = own()
	}
	if s, ok := item.(session); ok {
		o := s.offsets()
		o.StartTimezoneOffset, o.EndTimezoneOffset = cmp.Or(o.StartTimezoneOffset, own()), cmp.Or(o.EndTimezoneOffset, own())
	}
}

// decode returns the summary of a record as readers see it.
func (p *Providers) decode(r *Record) (Summary, error) {
	out, err := r.Decode()
	if err != nil {
		return nil, err
	}
	p.publish(out, out.head().CreatedAt, out.head().UpdatedAt)
	return out, nil
}

// Profile returns a user's profile from a provider; an empty provider means any. Of several profiles it returns that of
// the team's preferred provider, otherwise the one that changed last. It returns healthlab.NotFound if there is no
// profile or no such user.
func (s *Service) Profile(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (*Profile, error) {
	all, err := s.Summaries(ctx, team, user, SummaryQuery{Resource: "profile", Provider: provider})
	if err != nil {
		return nil, err
	}
	var list []*Profile
	for _, v := range all {
		if p, ok := v.(*Profile); ok {
			list = append(list, p)
		}
	}
	return preferredProfile(ctx, s, team, list, func(p *Profile) (string, healthlab.Time) { return p.Source.Provider, p.UpdatedAt })
}

// RawProfile returns the payload of the profile that [Service.Profile] returns. It returns NotFound if there is
// no payload, as in teams that do not keep payloads.
func (s *Service) RawProfile(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (RawRecord, error) {
	all, err := s.RawSummaries(ctx, team, user, SummaryQuery{Resource: "profile", Provider: provider})
	if err != nil {
		return RawRecord{}, err
	}
	return preferredProfile(ctx, s, team, all, func(r RawRecord) (string, healthlab.Time) { return r.Source.Provider, r.UpdatedAt })
}

// preferredProfile returns the profile of the team's preferred provider; of several, the one that changed last. of
// returns the provider of a profile and the time of its last change. The error is healthlab.NotFound if all is empty.
func preferredProfile[T any](ctx context.Context, s *Service, team healthlab.TeamID, all []T, of func(T) (string, healthlab.Time)) (best T, err error) {
	if len(all) == 0 {
		return best, fmt.Errorf("read profile: %w: the user has no profile", healthlab.NotFound)
	}
	numbers, err := s.opts.Preference(ctx, team)
	if err != nil {
		return best, fmt.Errorf("read profile: preferences: %w", err)
	}
	return slices.MaxFunc(all, func(a, b T) int {
		p, at := of(a)
		q, then := of(b)
		return cmp.Or(cmp.Compare(numbers[p], numbers[q]), at.Compare(then.Time))
	}), nil
}

// RawRecord is a record's payload as the source sent it.
type RawRecord struct {
	ID uuid.UUID
	// At is the index time of the record.
	At time.Time
	// Source is the source that recorded the data.
	Source Source
	// Sport is the sport of a workout; zero for other resources.
	Sport Sport
	// ProviderID is the source's own id of the record, or the service's id if the source has none.
	ProviderID string
	// Data is the payload.
	Data                 json.RawMessage
	CreatedAt, UpdatedAt healthlab.Time
}

// RawSummaries returns the payloads of the query's summaries, in the order of [Service.Summaries]. Teams that do
// not keep payloads have none. The errors are those of Summaries.
func (s *Service) RawSummaries(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, q SummaryQuery) ([]RawRecord, error) {
	records, err := s.records(ctx, team, user, q, true)
	if err != nil {
		return nil, fmt.Errorf("read raw summaries: %w", err)
	}
	out := make([]RawRecord, len(records))
	for i := range records {
		r := &records[i]
		v, err := r.Decode()
		if err != nil {
			return nil, fmt.Errorf("read raw summaries: %w", err)
		}
		h := v.head()
		out[i] = RawRecord{
			ID: r.ID, At: r.Index, Source: s.providers.source(h.Source), ProviderID: h.ExternalID,
			Data: json.RawMessage(r.Raw), CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt,
		}
		if w, ok := v.(*Workout); ok {
			out[i].Sport = w.Sport
		}
		if out[i].ProviderID == "" {
			out[i].ProviderID = r.ID.String()
		}
	}
	return out, nil
}

// recordOfWorkout is the stored document of a workout. Unlike the published one, it records whether the heart rate
// zones were computed from the workout's stream.
type recordOfWorkout struct {
	*Workout
	ZonesOfStream bool `json:"zones_of_stream,omitempty"`
}

// encodeRecord returns the document of a summary as it is stored.
func encodeRecord(item Summary) ([]byte, error) {
	var doc any = item
	if w, ok := item.(*Workout); ok {
		doc = recordOfWorkout{w, w.zonesOfStream}
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode summary: %w", err)
	}
	return out, nil
}

// decodeRecord reads the document of a stored summary.
func decodeRecord(doc []byte, item Summary) error {
	var into any = item
	w, isWorkout := item.(*Workout)
	var stored recordOfWorkout
	if isWorkout {
		stored.Workout = w
		into = &stored
	}
	if err := json.Unmarshal(doc, into); err != nil {
		return fmt.Errorf("decode summary: %w", err)
	}
	if isWorkout {
		w.zonesOfStream = stored.ZonesOfStream
	}
	return nil
}

// publish sets the fields of a summary that only readers see.
func (p *Providers) publish(item Summary, created, updated healthlab.Time) {
	h := item.head()
	h.Source = p.source(h.Source)
	h.CreatedAt, h.UpdatedAt = created, updated
	h.ExternalID, h.Raw = "", nil
	if b, ok := item.(*Body); ok {
		b.MeasuredAt = healthlab.Time{}
	}
}

func (p *Providers) source(src Source) Source {
	name := p.name(src.Provider)
	src.Name, src.Slug, src.Logo = name.Name, name.Slug, name.Logo
	return src
}

// payload returns the payload of a stored record; nil if there is none.
func payload(ctx context.Context, v View, resource string, id uuid.UUID) ([]byte, error) {
	records, err := v.Records(ctx, RecordQuery{Resource: resource, ID: id, Raw: true})
	if err != nil || len(records) == 0 {
		return nil, err
	}
	return records[0].Raw, nil
}
