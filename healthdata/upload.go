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

// Stage says where in a connection's life data was found.
type Stage string

const (
	// StageDaily is new data. Changes are announced with their payload. It is the
	// default, also as the empty string.
	StageDaily Stage = "daily"
	// StageHistorical is the backfill of a new connection. Its data is announced
	// once, when it is complete.
	StageHistorical Stage = "historical"
)

// Names of the rules that ingestion may refuse by (healthlab.RuleError).
const (
	// RuleNoConnection: the user has no working connection to the provider. An on-device
	// store is connected by the upload, unless [TeamSettings].ExplicitConnect is set.
	RuleNoConnection = "NO_CONNECTION"
)

// Upload says where uploaded data comes from.
type Upload struct {
	// Provider is the slug of a provider that the user has connected.
	Provider string
	// Stage is daily or historical.
	Stage Stage
	// Source says how the data was recorded: its Type, AppID, DeviceID, Sport and
	// WorkoutID. The rest is filled in.
	Source Source
	// Workout is the source's own id of the workout that the samples are of, for the
	// resources that are about one; that workout's id becomes Source.WorkoutID. It is of the
	// same source type, and may be stored later.
	Workout *string
	// Device is what recorded it, where the source says; it is kept, and its id becomes
	// Source.DeviceID.
	Device *DeviceInfo
	// TimeZone is the IANA zone of the items that say nothing of their own; empty if
	// not known.
	TimeZone string
	// Atomic refuses the whole upload if an item is refused. It holds for the Ingest
	// functions.
	Atomic bool
	// Within, where it is set, writes the upload in parts: it gets a write of each part of at most
	// [SummariesOfPart] summaries, runs it in a transaction, perhaps more than once, and returns its
	// error. The parts are in the order of the times of the summaries. If one fails, those before it stay
	// written. Nil: the whole upload is one write. It holds for [Service.IngestSummaries].
	Within func(ctx context.Context, write func(context.Context) error) error
	// Unparsed are items of the upload that the caller could not read. They are not among the
	// items that are handed over, and they are refused. It holds for [Service.IngestSamples]
	// and [Service.IngestSummaries]. For [Service.IngestWorkoutStream] and [Service.AppendWorkoutStream] they
	// are values of points, which are zero or nil in the stream; a problem has the name of the array as its path.
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

// MostItemProblems is the largest number of problems that are told of one refused item.
const MostItemProblems = 20

// Unparsed are the items of an upload that could not be read.
type Unparsed struct {
	// First are the first of them, at most [MostRefusals], by ascending Index.
	First []Refusal
	// Count is the number of all.
	Count int
}

// position returns the position in the upload of the k-th item that was read. Of more than
// MostRefusals unread items it counts the first ones, and the result is behind all of those.
func (u *Unparsed) position(k int) int {
	for _, r := range u.First {
		if r.Index > k {
			break
		}
		k++
	}
	return k
}

// UploadStart is an upload that begins.
type UploadStart struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
	Resource string
	// MayConnect says that the upload connects the provider if the user has not.
	MayConnect bool
	// EventKey is the Key of the events of samples, where all samples of the resource have one.
	EventKey string
	// Queries is what the upload reads in any case, with its locks.
	Queries []store.Query
}

// starting tells Options.BeforeUpload of an upload.
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
		if r.Key != KeyType { // the types are not known yet
			key := SeriesKey{Resource: r.Slug, Provider: up.Provider, SourceType: in.Source.Type}
			u.Queries = append(u.Queries, owner{team, user}.headsOf(key.publishedID(user)))
		}
	}
	return s.opts.BeforeUpload(ctx, u)
}

// Counts says what became of the items of an upload.
type Counts struct {
	// New items had never been seen.
	New int `json:"new"`
	// Changed items replaced an earlier version.
	Changed int `json:"changed"`
	// Same items were there already, or stood in the upload once more.
	Same int `json:"same"`
	// Dropped items are outside the user's ingestion bounds.
	Dropped int `json:"dropped"`
	// Refused are the first items that were not stored because they cannot be read or cannot be
	// true, at most [MostRefusals], by Index. Nil if there is none.
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

// Received says what became of what a provider sent.
type Received struct {
	// Counts are the numbers of items. Counts.Refused and Counts.RefusedCount are about the points of a workout
	// stream alone.
	Counts
	// Refusals are the items that were not kept, and why.
	Refusals []Refusal
	// Sent is how many objects were announced.
	Sent int
	// Oldest and Newest are the first and the last instant of what was kept; zero if
	// nothing was.
	Oldest, Newest time.Time
	// Days are the local days of what was kept, each once, in no order.
	Days []healthlab.Date
}

// Refusal says why an item was refused.
type Refusal struct {
	// Index is where it stood.
	Index int
	// Problems name fields and rules, never values.
	Problems []healthlab.Problem
}

func (r *Received) refuseAll(n int, problems []healthlab.Problem) {
	for i := range n {
		r.Refusals = append(r.Refusals, Refusal{i, problems})
	}
}

// see notes an item that is kept.
func (r *Received) see(at time.Time, day healthlab.Date) {
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

// ItemRefusal is an item that was not stored, and why.
type ItemRefusal struct {
	// Index is the item's position in the upload, from 0.
	Index int `json:"index"`
	// Problems name fields and rules, never values.
	Problems []ItemProblem `json:"problems"`
}

// ItemProblem is a rule that a field of an item breaks. It never holds the value.
type ItemProblem struct {
	// Field is the path inside the item, such as value; empty for the item as a whole.
	Field string `json:"field"`
	// Type is the name of the rule, such as missing, wrong_type, unit or out_of_bounds.
	Type string `json:"type"`
	// Msg says what is expected, with the bounds and the unit.
	Msg string `json:"msg"`
}

// itemRefusal publishes the problems of an item.
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

// refusals gathers the refused items of an upload.
type refusals struct {
	unparsed Unparsed
	first    []Refusal // of the items that were read, at most MostRefusals
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

// err returns why an upload of which n items were read is refused as a whole; nil if it is not. That is
// if no item is left, or if the upload is atomic and one is refused.
func (r *refusals) err(n int, atomic bool) error {
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

// CodeManyRefused is the code of the problem that gives the number of refused items, where an upload
// is refused as a whole and not all of them are listed.
const CodeManyRefused = "too_many_problems"

// addTo puts the refused items into the counts of an upload.
func (r *refusals) addTo(c *Counts) {
	first, count := r.all()
	c.RefusedCount = count
	for _, item := range first {
		c.Refused = append(c.Refused, itemRefusal(item))
	}
}

// SummaryPart is what one source recorded, of one answer of a provider.
type SummaryPart struct {
	Upload
	Items []Summary
}
