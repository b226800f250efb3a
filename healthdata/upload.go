package healthdata

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Stage says whether data is new or from the history of a connection.
type Stage string

const (
	// StageDaily is new data. Events have the data as their payload. It is the default, also as the empty
	// string.
	StageDaily Stage = "daily"
	// StageHistorical is the backfill of a new connection. One event is sent when the backfill is complete.
	StageHistorical Stage = "historical"
)

// Types of the healthlab.RuleError that an upload may be refused with.
const (
	// RuleNoConnection: the user has no working connection to the provider. An on-device
	// store is connected by the upload, unless [TeamSettings].ExplicitConnect is set.
	RuleNoConnection = "NO_CONNECTION"
)

// Upload describes the source of uploaded data.
type Upload struct {
	// Provider is the slug of a provider that the user has connected.
	Provider string
	// Stage is daily or historical.
	Stage Stage
	// Source has the Type, AppID, DeviceID, Sport and WorkoutID of the data. The service fills in the other
	// fields.
	Source Source
	// Workout is the source's own id of the workout of the samples, for resources with workouts. The service
	// sets Source.WorkoutID to the id of that workout. The workout must be of the same source type and app, and of
	// the same device if the provider is an on-device store or the team itself. It may be stored later.
	Workout *string
	// Device describes the device that recorded the data, if the source states it. The service stores the device
	// and sets Source.DeviceID to its id.
	Device *DeviceInfo
	// TimeZone is the IANA zone of items without a zone of their own; empty if it is not known.
	TimeZone string
	// Atomic refuses the whole upload if one item is refused. The Ingest functions use it.
	Atomic bool
	// Within, if set, writes the upload in parts of at most [SummariesOfPart] summaries. It is called with the
	// write function of each part, runs that function in a transaction, perhaps more than once, and returns its
	// error. The parts are in the order of the times of the summaries. If a part fails, earlier parts stay
	// written. If Within is nil, the whole upload is one write. [Service.IngestSummaries] uses it.
	Within func(ctx context.Context, write func(context.Context) error) error
	// Unparsed are items of the upload that the caller could not read. They are not among the given items, and
	// are reported as refused by [Service.IngestSamples] and [Service.IngestSummaries]. For
	// [Service.IngestWorkoutStream] and [Service.AppendWorkoutStream] they are unreadable values of points,
	// which are zero or nil in the stream. The path of such a problem is the name of the array.
	Unparsed Unparsed
}

// SummariesOfPart is the largest number of summaries that [Upload].Within writes at once.
const SummariesOfPart = 2000

func (u *Upload) within(ctx context.Context, write func(context.Context) error) error {
	if u.Within == nil {
		return write(ctx)
	}
	return u.Within(ctx, write)
}

// MostRefusals is the largest number of refused items of an upload that are named. All are counted.
const MostRefusals = 100

// MostItemProblems is the largest number of reported problems of one refused item.
const MostItemProblems = 20

// Unparsed are the items of an upload that could not be read.
type Unparsed struct {
	// First has the first unreadable items, at most [MostRefusals], ascending by Index.
	First []Refusal
	// Count is the number of all unreadable items.
	Count int
}

// position returns the position in the upload of the k-th item that could be read. If more than MostRefusals items
// could not be read, it counts only the first of them, and treats the others as if they were at the end of the upload.
func (u *Unparsed) position(k int) int {
	for _, r := range u.First {
		if r.Index > k {
			break
		}
		k++
	}
	return k
}

// UploadStart describes an upload at its start.
type UploadStart struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
	Resource string
	// MayConnect reports whether the upload connects the provider if the user has no connection.
	MayConnect bool
	// EventKey is the Key of the sample events, if all samples of the resource have one key.
	EventKey string
	// Queries are the queries that every upload makes, with their locks.
	Queries []store.Query
}

// starting calls Options.BeforeUpload.
func (s *Service) starting(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, up *Upload, r *Resource) error {
	if s.opts.BeforeUpload == nil {
		return nil
	}
	u := UploadStart{Team: team, User: user, Provider: up.Provider, Resource: r.Slug, Queries: []store.Query{store.User(team, user)}}
	if p := s.providers.Get(up.Provider); p != nil {
		u.MayConnect = p.Class == classStore
	}
	if r.Class == ClassTimeseries && r.Key != KeyWorkout {
		in := intake{Upload: *up, team: team, user: User{ID: user}, resource: r}
		in.Source.Type = cmp.Or(in.Source.Type, SourceUnknown)
		u.EventKey = in.eventKey()
		if r.Key != KeyType { // the sample types are not known yet
			key := SeriesKey{Resource: r.Slug, Provider: up.Provider, SourceType: in.Source.Type}
			u.Queries = append(u.Queries, owner{team, user}.headsOf(key.publishedID(user)))
		}
	}
	return s.opts.BeforeUpload(ctx, u)
}

// Counts are the numbers of items of an upload by outcome.
type Counts struct {
	// New items were not stored before.
	New int `json:"new"`
	// Changed items replaced an earlier version.
	Changed int `json:"changed"`
	// Same items were stored already, or are repeated in the upload.
	Same int `json:"same"`
	// Dropped items are outside of the user's ingestion window.
	Dropped int `json:"dropped"`
	// Refused are the first refused items, at most [MostRefusals], by Index. An item is refused if it is
	// unreadable or impossible. Nil if there is none.
	Refused []ItemRefusal `json:"refused,omitempty"`
	// RefusedCount is the number of all refused items.
	RefusedCount int `json:"refused_count,omitempty"`
}

func (c *Counts) count(o PutOutcome) {
	switch o {
	case PutNew:
		c.New++
	case PutChanged:
		c.Changed++
	case PutSame:
		c.Same++
	}
}

func (c *Counts) add(o *Counts) {
	c.New, c.Changed, c.Same, c.Dropped = c.New+o.New, c.Changed+o.Changed, c.Same+o.Same, c.Dropped+o.Dropped
}

// Received is the result of storing data from a provider.
type Received struct {
	// Counts are the numbers of items by outcome. Counts.Refused and Counts.RefusedCount are only for the points
	// of a workout stream.
	Counts
	// Refusals are the items that were not stored, with their problems.
	Refusals []Refusal
	// Sent is the number of objects in events.
	Sent int
	// Oldest and Newest are the first and the last instant of stored items; zero if nothing was stored.
	Oldest, Newest time.Time
	// Days are the local days of stored items, without duplicates, in no order.
	Days []healthlab.Date
}

// Refusal is a refused item with its problems.
type Refusal struct {
	// Index is the position of the item in the upload, from 0.
	Index int
	// Problems name fields and rules, never values.
	Problems []healthlab.Problem
}

func (r *Received) refuseAll(n int, problems []healthlab.Problem) {
	for i := range n {
		r.Refusals = append(r.Refusals, Refusal{i, problems})
	}
}

// addItem records the time and day of a stored item.
func (r *Received) addItem(at time.Time, day healthlab.Date) {
	if r.Oldest.IsZero() || at.Before(r.Oldest) {
		r.Oldest = at
	}
	if at.After(r.Newest) {
		r.Newest = at
	}
	if day.IsZero() {
		return
	}
	if n := len(r.Days); n > 0 && r.Days[n-1] == day || slices.Contains(r.Days, day) {
		return
	}
	r.Days = append(r.Days, day)
}

// ItemRefusal is an item that was not stored, with its problems.
type ItemRefusal struct {
	// Index is the item's position in the upload, from 0.
	Index int `json:"index"`
	// Problems name fields and rules, never values.
	Problems []ItemProblem `json:"problems"`
}

// ItemProblem is a rule that a field of an item breaks. It never contains the value.
type ItemProblem struct {
	// Field is the path inside the item, such as value; empty for the item as a whole.
	Field string `json:"field"`
	// Type is the name of the rule, such as missing, wrong_type, unit or out_of_bounds.
	Type string `json:"type"`
	// Msg says what is expected, with the bounds and the unit.
	Msg string `json:"msg"`
}

// itemRefusal converts the problems of an item to their JSON form.
func itemRefusal(r Refusal) ItemRefusal {
	out := ItemRefusal{Index: r.Index, Problems: make([]ItemProblem, len(r.Problems))}
	for k, p := range r.Problems {
		parts := make([]string, len(p.Path))
		for n, part := range p.Path {
			parts[n] = fmt.Sprint(part)
		}
		out.Problems[k] = ItemProblem{Field: strings.Join(parts, "."), Type: p.Code, Msg: p.Msg}
	}
	return out
}

// refusals collects the refused items of an upload.
type refusals struct {
	unparsed Unparsed
	first    []Refusal // refused items that were read, at most MostRefusals
	count    int
}

func (r *refusals) add(k int, q healthlab.Problems) {
	r.count++
	if len(r.first) < MostRefusals {
		r.first = append(r.first, Refusal{r.unparsed.position(k), q[:min(len(q), MostItemProblems)]})
	}
}

func (r *refusals) all() (first []Refusal, count int) {
	first = slices.Concat(r.unparsed.First, r.first)
	slices.SortStableFunc(first, func(a, b Refusal) int { return a.Index - b.Index })
	return first[:min(len(first), MostRefusals)], r.unparsed.Count + r.count
}

// uploadError returns the error that refuses the upload as a whole, or nil. An upload of n items is refused if no item
// is left, or if it is atomic and an item is refused.
func (r *refusals) uploadError(n int, atomic bool) error {
	first, count := r.all()
	if count == 0 || !atomic && r.count < n {
		return nil
	}
	var p healthlab.Problems
	for _, item := range first {
		p.Under(item.Problems, "data", item.Index)
	}
	if count > len(first) {
		p = append(p, healthlab.Problem{
			Path: []any{"data"}, Code: CodeManyRefused, Msg: fmt.Sprintf("has %d refused items; the first %d are listed", count, len(first)),
			Context: map[string]any{"refused_count": count},
		})
	}
	return p.Err()
}

// CodeManyRefused is the code of the problem with the number of refused items, if an upload is refused as a
// whole and not all of them are listed.
const CodeManyRefused = "too_many_problems"

// addTo adds the refused items to the counts of an upload.
func (r *refusals) addTo(c *Counts) {
	first, count := r.all()
	c.RefusedCount = count
	for _, item := range first {
		c.Refused = append(c.Refused, itemRefusal(item))
	}
}

// SummaryPart has the summaries of one source, as a part of a provider's response.
type SummaryPart struct {
	Upload
	Items []Summary
}
