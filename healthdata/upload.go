package healthdata

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
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
	// Refused items have values that cannot be; see [Resource.Bounds]. Nil if there is none.
	Refused []ItemRefusal `json:"refused,omitempty"`
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

// Received says what became of what a provider sent.
type Received struct {
	Counts
	// Refused are the items that were not kept, and why.
	Refused []Refusal
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

// refuseAll notes that none of n items is kept.
func (r *Received) refuseAll(n int, problems []healthlab.Problem) {
	for i := range n {
		r.Refused = append(r.Refused, Refusal{i, problems})
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
	// Field is the path inside the item, such as value.
	Field string `json:"field"`
	// Type is out_of_bounds, negative, too_early or future.
	Type string `json:"type"`
	// Msg says what is expected, with the bounds and the unit.
	Msg string `json:"msg"`
}

// refusedItem publishes the problems of an item.
func itemRefusal(i int, list healthlab.Problems) ItemRefusal {
	out := ItemRefusal{Index: i, Problems: make([]ItemProblem, len(list))}
	for k, p := range list {
		parts := make([]string, len(p.Path))
		for n, part := range p.Path {
			parts[n] = fmt.Sprint(part)
		}
		out.Problems[k] = ItemProblem{Field: strings.Join(parts, "."), Type: p.Code, Msg: p.Msg}
	}
	return out
}

// uploadProblems gathers the problems of the n items of an upload.
type uploadProblems struct {
	n     int
	fatal healthlab.Problems // of items that refuse the upload
	all   healthlab.Problems
	alone []ItemRefusal
}

// refuse notes the problems of an item.
func (u *uploadProblems) refuse(i int, q healthlab.Problems) {
	u.all.Under(q, "data", i)
	if refusedAlone(q) {
		u.alone = append(u.alone, itemRefusal(i, q))
		return
	}
	u.fatal.Under(q, "data", i)
}

// err returns why the upload is refused as a whole; nil if it is not.
func (u *uploadProblems) err() error {
	if len(u.fatal) > 0 || len(u.alone) > 0 && len(u.alone) == u.n {
		return u.all.Err()
	}
	return nil
}

// refusedAlone reports whether the problems of an item leave the rest of its upload good.
func refusedAlone(list healthlab.Problems) bool {
	return !slices.ContainsFunc(list, func(p healthlab.Problem) bool {
		return p.Code != check.CodeBounds && p.Code != check.CodeNegative && p.Code != check.CodeEarly && p.Code != check.CodeFuture
	})
}

// SummaryPart is what one source recorded, of one answer of a provider.
type SummaryPart struct {
	Upload
	Items []Summary
}
