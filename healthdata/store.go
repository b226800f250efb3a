package healthdata

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// Users stores users with their connections, and the events about changes of both.
//
// All methods are safe for concurrent use and atomic: a call writes everything or nothing. If the context has ended
// before a call, the call writes nothing and returns the error of the context. Arguments and results are copies:
// changing them does not change stored data.
//
// Text is stored byte for byte. Text that is not UTF-8 or contains NUL is healthlab.Invalid, in queries too. Times are
// stored in UTC to the microsecond. A user that the team does not have is healthlab.NotFound, even if another team has
// a user with this id.
//
// Methods return the connections of a user by CreatedOn, then Provider. Two connections of one provider are
// healthlab.Invalid. Empty Connections and Scopes are returned as nil, and so are ConnectedSources, which are not
// stored.
//
// A store assigns the Seq of every event it writes: 1 for the first event of a team and Key, and one more for each that
// follows.
type Users interface {
	// Insert adds a live user with Revision 1; u.Revision is ignored. healthlab.Invalid if u has no team or id, or has
	// DeletedAt; healthlab.Conflict if any user of any team has the id; a [*ClientUserIDError] if a live user of the
	// team has the client user id; healthlab.Exhausted if limit is above zero and the team has that many live users
	// already. A taken client user id is reported before a reached limit. Concurrent calls do not exceed the limit, and
	// do not insert one client user id twice.
	Insert(ctx context.Context, u User, limit int) error

	// Get returns a user, live or deleted, until it is erased.
	Get(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (User, error)

	// Update loads the user, live or deleted, lets change edit it, and writes it back with the returned events and the
	// next Revision. Changes of ID, Team, CreatedOn and Revision are ignored. change may run more than once, so it must
	// be pure: no I/O, no clock. An error of change is returned unchanged, and nothing is written. Concurrent updates
	// behave as if they ran one after another. Update returns a [*ClientUserIDError] if the user is live after change
	// and another live user has its client user id, and healthlab.Unavailable if the store gave up under contention.
	//
	// While a user is deleted, the store writes no event about the user. The write that deletes the user removes the
	// user's stored events with their deliveries and logs, but the Seq of their keys continues. Other data of the user
	// in the same store (orders, results, parsing jobs, demographics) is not returned by reads, as the contracts of
	// those interfaces say, until the user is restored.
	Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
		change func(*User) ([]healthlab.Event, error)) (User, error)

	// List returns one page of the users that q selects, by CreatedOn, then ID. A page past the end is empty and has
	// the true total. A negative Offset or Limit is healthlab.Invalid.
	List(ctx context.Context, q UserQuery) (UserPage, error)

	// Metrics counts a team's live users and those of their connections that are not Deregistered, in total and by the
	// week of CreatedOn in UTC. It does not set OrderedTests. A team without users has zeros.
	Metrics(ctx context.Context, team healthlab.TeamID) (TeamMetrics, error)

	// ClaimErasures returns at most n users of any team that were deleted at or before deletedBefore, the earliest
	// deletion first. No other call returns these users until the lease has ended by the store's clock.
	ClaimErasures(ctx context.Context, deletedBefore time.Time, n int, lease time.Duration) ([]UserRef, error)

	// Erase removes a deleted user and all stored data about the user permanently: health data, connections, events
	// with their deliveries and, if the same store has them, lab orders with their results and the stored responses to
	// order requests. healthlab.NotFound if there is no such user, healthlab.Precondition if the user is live. Data of
	// other users stays, also that of a user who has taken over the client user id.
	Erase(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error
}

// UserRef names a user of a team.
type UserRef struct {
	Team healthlab.TeamID
	User healthlab.UserID
}

// LogValue shows the ids.
func (r UserRef) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", r.Team.String()), slog.String("user", r.User.String()))
}

// UserQuery selects users of a team. A zero filter matches all.
type UserQuery struct {
	Team healthlab.TeamID
	// Deleted selects the deleted users instead of the live ones, the most recently deleted first, then by ID.
	Deleted bool
	// ClientUserID selects the users with exactly this client user id.
	ClientUserID string
	// Prefix selects the users whose id or client user id begins with it, both after [healthlab.FoldText]. No character
	// is a wildcard.
	Prefix string
	// Offset is the number of users to skip. Limit is the greatest number of users to return; 0 means 100.
	Offset, Limit int
}

// UserPage is a page of users. Total is the number of users that the query selects, on all pages.
type UserPage struct {
	Users []User
	Total int
}

// ClientUserIDError reports that a live user of the team already has this client user id, and names that user. It
// unwraps to healthlab.Conflict.
type ClientUserIDError struct {
	User      healthlab.UserID
	CreatedOn healthlab.Time
}

// Error returns a text without the client user id and the user.
func (e *ClientUserIDError) Error() string { return "client_user_id is taken" }

// Unwrap returns healthlab.Conflict.
func (e *ClientUserIDError) Unwrap() error { return healthlab.Conflict }

// Data stores health data: records (summaries and workout streams) and series of samples, and the events about changes
// of both.
//
// All methods are safe for concurrent use and atomic, as those of [Users]. Writes of one user and resource behave as if
// they ran one after another. A user that the team does not have, or that is deleted, is healthlab.NotFound.
type Data interface {
	// PutRecords writes records of one resource. It calls events with the outcome of each record, in the order of
	// records, and writes the returned events in the same commit. events may run more than once, so it must be pure. An
	// error of events is returned unchanged, and nothing is written. A nil events writes no event.
	//
	// A record is new if the user has none with that id. It is the same if its Doc, Raw, Index, Offset and Origin equal
	// the stored ones; then nothing is written. Otherwise it is changed: it replaces the stored record, except that
	// CreatedAt stays. healthlab.Precondition if a record has Replaces and the stored Doc is another one; then nothing
	// is written. healthlab.Invalid for two records with the same id, records of two resources, the zero id, an empty
	// Doc, NUL in Doc or Raw, and text with NUL or that is not UTF-8. An empty list of records is no error and changes
	// nothing.
	//
	// Two sessions of one provider, source type and origin that share more than half of the shorter one are one
	// session. The longer one covers the other; of equally long ones, the one that changed last covers the other. Each
	// write sets CoveredBy of all sessions that it affects.
	PutRecords(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []Record,
		events func([]PutResult) ([]healthlab.Event, error)) error

	// MergeSamples writes samples into series; the latest sample of a time is kept. It calls events with the outcome of
	// each batch, in the order of batches, as PutRecords does. healthlab.Invalid for two batches with the same key, a
	// batch without samples, samples that are not valid ([series.Block.Validate]), and text with NUL or that is not
	// UTF-8. An empty list of batches is no error and changes nothing.
	MergeSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []SampleBatch,
		events func([]series.Outcome) ([]healthlab.Event, error)) error

	// Remove removes records and samples, all or none, and returns how many of them existed. Missing records and
	// samples are no error. healthlab.Invalid if r names a series twice, or if times do not ascend.
	Remove(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r Removal) (int, error)

	// RemovedDays returns the days from which data of a user was removed at or after an instant of the store's clock,
	// by resource, source type and day. They include the days that a record lost because its time or offset changed.
	RemovedDays(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, since time.Time) ([]RemovedDay, error)

	// RemovedUsers returns the users of a team for whom RemovedDays returns a day, each once, in no order.
	RemovedUsers(ctx context.Context, team healthlab.TeamID, since time.Time) ([]healthlab.UserID, error)

	// View calls read with a consistent view of one user's data, without writes that are committed while read runs. If
	// such a write changed data that read had not loaded yet, read runs again with a new view; only the last run
	// counts. The view is used by one goroutine at a time and not after read returns. The error of the last run is
	// returned unchanged.
	View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(View) error) error

	// Find returns the record of a team with this resource and id, and the id of its user. healthlab.NotFound if there
	// is none.
	Find(ctx context.Context, team healthlab.TeamID, resource string, id uuid.UUID) (healthlab.UserID, Record, error)
}

// View is a consistent snapshot of one user's data. Results are shared with other readers: do not change them.
type View interface {
	// Records returns the records that q selects, by Index, then ID.
	Records(ctx context.Context, q RecordQuery) ([]Record, error)
	// Series returns the series that q selects, by key. Each has the headers of its chunks (Data is nil), ascending,
	// and its Pending chunks with their data, in the order of arrival. Chunks that do not overlap the range are left
	// out.
	Series(ctx context.Context, q SeriesQuery) ([]Series, error)
	// Load returns the chunks of a series that begin at the given instants, with their data, in that order. It
	// returns healthlab.NotFound if no chunk begins at an instant, or if the user does not have the series.
	Load(ctx context.Context, key SeriesKey, starts []int64) ([]series.Chunk, error)
}

// Once wraps a read function for [Data].View that must not run twice, because it passes on what it reads. The second
// run fails with healthlab.Unavailable, so that the caller can start again later.
func Once(read func(View) error) func(View) error {
	ran := false
	return func(v View) error {
		if ran {
			return fmt.Errorf("%w: the data changed while it was read", healthlab.Unavailable)
		}
		ran = true
		return read(v)
	}
}

// Record is a summary or a workout stream in its stored form. A store does not interpret Doc and Raw.
type Record struct {
	// Resource is the slug of the resource.
	Resource string
	ID       uuid.UUID
	// Provider and SourceType identify the source of the record.
	Provider   string
	SourceType SourceType
	// Origin is the app and the device that recorded the data, if the sender names them.
	Origin Origin
	// Session is the time from the start to the end of a sleep session or a workout, in microseconds since 1970; zero
	// for other records. Of overlapping sessions of one resource, provider, source type and origin, the store marks all
	// but one as covered.
	Session series.Range
	// CoveredBy is the id of the record whose session covers this session; zero if there is none. The store sets
	// it.
	CoveredBy uuid.UUID
	// Index is the time by which reads filter and sort, in UTC. The index of a day is midnight UTC.
	Index time.Time
	// Offset is seconds east of UTC where the data was recorded.
	Offset int
	// Doc is the JSON of the record; never empty.
	Doc []byte
	// Raw is the source's own payload; nil if it is not kept.
	Raw []byte
	// CreatedAt is when the record was first stored, UpdatedAt when it last changed.
	CreatedAt, UpdatedAt time.Time
	// Replaces is the Doc that the stored record must have for the write to succeed. Empty and not nil means that no
	// record may be stored. Nil replaces any record. Replaces is not stored.
	Replaces []byte
}

// PutOutcome is the effect of writing one record.
type PutOutcome uint8

const (
	// PutSame: the record was stored already, and nothing was written.
	PutSame PutOutcome = iota
	// PutNew: the record was not stored before.
	PutNew
	// PutChanged: the record replaced an earlier version.
	PutChanged
)

// PutResult is the effect of writing one record.
type PutResult struct {
	Outcome PutOutcome
	// CreatedAt is when the record was first stored.
	CreatedAt time.Time
	// Covered reports whether another record covers this one, WasCovered whether one did before the write.
	Covered, WasCovered bool
	// Record is set in results about records that were not written but became covered or are no longer covered. These
	// results follow those of the written records, by ID.
	Record *Record
}

// RecordQuery selects records of a user. A zero filter matches all.
type RecordQuery struct {
	// Resource is required.
	Resource string
	// From and To bound Index, both inclusive.
	From, To time.Time
	Provider string
	ID       uuid.UUID
	// Raw selects only records with a Raw payload, and returns the payload. Without it, Raw is nil in the result.
	Raw bool
}

// SeriesKey identifies a series of a user: the identity of its samples without the timestamp.
type SeriesKey struct {
	// Resource is the slug of the resource.
	Resource   string
	Provider   string
	SourceType SourceType
	// Part is the sample type or the workout's id if the [Resource].Key requires it, the device's id if
	// [TeamSettings].DevicesApart applies, and otherwise empty.
	Part string
	// Origin distinguishes the apps and devices of one source. The key of published samples has no origin: see
	// [SeriesKey.Published].
	Origin Origin
}

// Compare orders keys by resource, provider, source type, part and origin, by bytes.
func (k SeriesKey) Compare(o SeriesKey) int {
	return cmp.Or(cmp.Compare(k.Resource, o.Resource), cmp.Compare(k.Provider, o.Provider),
		cmp.Compare(k.SourceType, o.SourceType), cmp.Compare(k.Part, o.Part), k.Origin.Compare(o.Origin))
}

// Published returns the key without the origin. Of several samples with one published key and timestamp, readers
// see the one that was received last.
func (k SeriesKey) Published() SeriesKey {
	k.Origin = Origin{}
	return k
}

// Origin is the app and the device that recorded data, if the sender names them. One source may have several,
// such as two watches of one phone store.
type Origin struct {
	// App is empty if no app is named.
	App string
	// Device is the service's id of the device; zero if no device is named.
	Device uuid.UUID
}

// Compare orders origins by app and device, by bytes.
func (o Origin) Compare(p Origin) int {
	return cmp.Or(cmp.Compare(o.App, p.App), bytes.Compare(o.Device[:], p.Device[:]))
}

// SampleBatch is samples of one series to write.
type SampleBatch struct {
	Key SeriesKey
	// Samples is valid (see [series.Block.Validate]) and not empty.
	Samples *series.Block
	// Span is the length of time that one chunk of the series covers.
	Span series.Span
}

// Removal lists the data of a user to remove.
type Removal struct {
	// Resource is the slug of the records in IDs.
	Resource string
	IDs      []uuid.UUID
	// Parts is the slug of records that belong to those in IDs, such as the stages of nights. PartIDs are their
	// ids. They are removed in the same write and not counted.
	Parts   string
	PartIDs []uuid.UUID
	// Samples are the samples to remove, by series.
	Samples []SampleRemoval
	// Events returns the events for the removed data, to be written in the same commit. Nil writes no event.
	Events func(Removed) ([]healthlab.Event, error)
}

// Removed is the data that a removal found.
type Removed struct {
	// IDs and PartIDs are the ids of the records that existed, without duplicates.
	IDs, PartIDs []uuid.UUID
	// Samples has the samples that existed, for each entry of [Removal.Samples], ascending by time.
	Samples [][]series.Gone
	// Gone are the removed samples at whose published key and time readers now see no sample. Shown are the samples of
	// other origins that readers see instead of removed ones, by key and time.
	Gone  []series.Gone
	Shown []ShownSample
	// Hidden are the ids of the removed records that another session covered, so that readers did not see them. Marked
	// are the remaining records that became covered or are no longer covered.
	Hidden []uuid.UUID
	Marked []*Record
}

// ShownSample is a sample with the key of its series.
type ShownSample struct {
	Key    SeriesKey
	Sample series.Sample
}

// count returns the number of removed summaries and samples. Parts of summaries (PartIDs) are not counted.
func (r *Removed) count() int {
	n := len(r.IDs)
	for _, s := range r.Samples {
		n += len(s)
	}
	return n
}

// SampleRemoval lists samples of one series to remove.
type SampleRemoval struct {
	Key SeriesKey
	// Times are timestamps in microseconds since 1970, ascending.
	Times []int64
	// App and Device, if set, limit the removal to samples that this app or device wrote last.
	App    string
	Device uuid.UUID
	// Span is the length of time that one chunk of the series covers.
	Span series.Span
}

func (r *SampleRemoval) selects(a *series.Attrs) bool {
	return (r.App == "" || r.App == a.App) && (r.Device == uuid.Nil || r.Device == a.Device)
}

// SeriesQuery selects series of a user.
type SeriesQuery struct {
	// Resources are the slugs of the resources; at least one.
	Resources []string
	// From (inclusive) and To (exclusive) bound the samples' timestamps, in
	// microseconds since 1970. Both zero means all.
	From, To int64
	// Provider selects the series of one provider; empty means any.
	Provider string
	// Key selects one series; nil means any.
	Key *SeriesKey
	// KeysOnly returns the keys of the series without their chunks, and ignores From and To. A series whose samples
	// were all removed may be among them.
	KeysOnly bool
	// Whole reads the chunks with their data, so that [View].Load needs no read of its own. A transaction that writes
	// to the series after the view needs KeysOnly or Whole: it locks chunks when it writes them, but not headers that
	// it has read.
	Whole bool
}

// Series is a stored series, or the part of one that overlaps a range.
type Series struct {
	Key     SeriesKey
	Chunks  []series.Chunk
	Pending []series.Chunk
}

// TeamMetrics has the counts of a team's users and connections.
type TeamMetrics struct {
	Team             healthlab.TeamID `json:"team_id"`
	Users            int              `json:"number_of_users"`
	ConnectedSources int              `json:"number_of_connected_sources"`
	// ErroredConnectedSources is the number of connected sources with the status error.
	ErroredConnectedSources int `json:"number_of_errored_connected_sources"`
	// ConnectedSourcesByWeek has one entry for each week in which a source was connected, oldest first. A week
	// begins on Monday. It is never null in JSON.
	ConnectedSourcesByWeek []WeekCount `json:"number_of_connected_sources_by_week"`
	OrderedTests           int         `json:"number_of_ordered_tests"`
}

// WeekCount is the number of sources that were connected in the week from Date, and the total until its end.
type WeekCount struct {
	Date  healthlab.Date `json:"date"`
	Value int            `json:"value"`
	All   int            `json:"all"`
}

// CheckRecords returns a [healthlab.InvalidError] if PutRecords must refuse the records. Valid records are of
// one resource, with distinct ids, non-empty documents and text that [healthlab.CheckText] accepts. Stores call
// it before they write.
func CheckRecords(records []Record) error {
	var p healthlab.Problems
	seen := make(map[uuid.UUID]bool, len(records))
	for i := range records {
		r := &records[i]
		if r.Resource == "" || r.Resource != records[0].Resource {
			p.Add("resource", "must be set, and be the same for all records", i, "resource")
		}
		if r.ID == uuid.Nil || seen[r.ID] {
			p.Add("id", "must not come twice", i, "id")
		}
		seen[r.ID] = true
		if len(r.Doc) == 0 {
			p.Add("missing", "must be set", i, "doc")
		}
		if healthlab.CheckText(r.Resource, r.Provider, string(r.SourceType), r.Origin.App) != nil ||
			bytes.IndexByte(r.Doc, 0) >= 0 || bytes.IndexByte(r.Raw, 0) >= 0 {
			p.Add("text", "must have only texts that are UTF-8 without NUL", i)
		}
	}
	return p.Err()
}

// CheckBatches returns a [healthlab.InvalidError] if MergeSamples must refuse the batches. Valid batches are of
// distinct series, with samples that [series.Block.Validate] accepts and text that [healthlab.CheckText]
// accepts. Stores call it before they write.
func CheckBatches(batches []SampleBatch) error {
	var p healthlab.Problems
	seen := map[SeriesKey]bool{}
	for i := range batches {
		b := &batches[i]
		if len(batches) > 1 { // most uploads have one batch
			if seen[b.Key] {
				p.Add("key", "must not come twice", i, "key")
			}
			seen[b.Key] = true
		}
		if !b.Key.storable() {
			p.Add("text", "must have only texts that are UTF-8 without NUL", i, "key")
		}
		switch {
		case b.Samples == nil || b.Samples.Len() == 0:
			p.Add("missing", "must have at least one sample", i, "samples")
		case b.Samples.Validate() != nil:
			p.Add("samples", "must have columns of one length, strictly ascending times in the years 1 to 9999, finite values, and runs that cover all samples", i, "samples")
		case slices.ContainsFunc(b.Samples.Runs, unstorable):
			p.Add("text", "must have only texts that are UTF-8 without NUL", i, "samples")
		}
	}
	return p.Err()
}

func (k *SeriesKey) storable() bool {
	return healthlab.CheckText(k.Resource, k.Provider, string(k.SourceType), k.Part, k.Origin.App) == nil
}

func unstorable(r series.Run) bool {
	a := &r.Attrs
	return healthlab.CheckText(a.Type, a.Unit, a.App, a.Sport, a.Location, a.Intensity,
		a.DeliveryMode, a.DeliveryForm, a.BolusPurpose, a.Text, a.Tags) != nil
}

// checkRemoval returns [healthlab.Invalid] if Remove must refuse r. A valid removal has distinct series,
// ascending times and text that [healthlab.CheckText] accepts. Stores call it before they write.
func checkRemoval(r *Removal) error {
	var p healthlab.Problems
	seen := make(map[SeriesKey]bool, len(r.Samples))
	for i := range r.Samples {
		s := &r.Samples[i]
		if seen[s.Key] {
			p.Add("key", "must not come twice", "samples", i, "key")
		}
		seen[s.Key] = true
		if !s.Key.storable() {
			p.Add("text", "must have only texts that are UTF-8 without NUL", "samples", i, "key")
		}
		for k := 1; k < len(s.Times); k++ {
			if s.Times[k] <= s.Times[k-1] {
				p.Add("order", "must be later than the time before it", "samples", i, "times", k)
				break
			}
		}
	}
	if err := p.Err(); err != nil {
		return err
	}
	return healthlab.CheckText(r.Resource, r.Parts)
}
