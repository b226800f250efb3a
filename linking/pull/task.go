package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// TaskKind is the kind of data that a task fetches.
type TaskKind string

const (
	// History is data from before the source was connected.
	History TaskKind = "history"
	// News is new data. Its task never ends: it fetches new data at intervals.
	News TaskKind = "news"
	// Uploads is data that an app or a team pushes. Its task is never due and only counts the data.
	Uploads TaskKind = "uploads"
)

// Status is the state of a task.
type Status string

const (
	// Scheduled: the task waits for its turn, and nothing was fetched yet.
	Scheduled Status = "scheduled"
	// InProgress: a part of the range was fetched.
	InProgress Status = "in_progress"
	// Retrying: the task waits after a temporary error.
	Retrying Status = "retrying"
	// Success: the whole range was fetched.
	Success Status = "success"
	// Failure: the task was given up after errors, or all items of a page were refused (of a history: all of its
	// items).
	Failure Status = "failure"
)

// ErrorClass is the reason why a task waits or was given up.
type ErrorClass string

// Error classes: the first four are temporary, the others permanent.
const (
	RateLimited      ErrorClass = "provider_rate_limit_exceeded"
	ProviderDown     ErrorClass = "provider_unavailable"
	TransportFailure ErrorClass = "transport_failure"
	Contention       ErrorClass = "resource_contention"
	NonRetriable     ErrorClass = "non_retriable_error"
	Unexpected       ErrorClass = "unexpected_error"
	QuotaExhausted   ErrorClass = "retry_quota_exhausted"
)

// Ref identifies a connection.
type Ref struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
}

// LogValue logs the user's id and the provider's slug.
func (r Ref) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", r.User.String()), slog.String("provider", r.Provider))
}

// Key identifies a task.
type Key struct {
	Ref
	Resource string
	Kind     TaskKind
}

// LogValue logs the user's id, the slugs and the kind.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", k.User.String()), slog.String("provider", k.Provider),
		slog.String("resource", k.Resource), slog.String("kind", string(k.Kind)))
}

// Task is a fetch of one resource of a connection, with its progress. A run is one fetch of the range From to To, which
// may take many requests. A history has one run; a task of kind News has one after another. Instants are in UTC; the
// zero time means never.
type Task struct {
	Key `json:"-"` // not in the document, because it is the row's key
	// Linked is the LinkedAt of the connection when the task was planned.
	Linked time.Time `json:",omitzero"`
	// Client is the id of the team's own OAuth client of the connection; empty for that of the deployment.
	Client string `json:",omitempty"`
	// Lead is the resource of the task whose requests also fetch this history; empty if the task makes requests of its
	// own.
	Lead   string `json:",omitempty"`
	Status Status
	// From and To bound the range of the run. It is fetched from To backwards: the part from Until to To was fetched.
	// Until is zero before the first request, and after the whole range was fetched.
	From, To, Until time.Time `json:",omitzero"`
	// Cursor is the provider's cursor for the next page of the part that ends at Until; empty for its first page.
	Cursor string `json:",omitzero"`
	// Turn orders due tasks, the lowest first. Each stored page adds Step to Turn.
	Turn, Step int64 `json:",omitzero"`
	// Due is when the task makes its next request; zero if it makes none.
	Due time.Time `json:",omitzero"`
	// Lease is when the lease of the claiming process ends, on the store's clock; zero if there is none. Fence
	// is the number of claims.
	Lease time.Time `json:",omitzero"`
	Fence int64     `json:",omitzero"`
	// Failures is the number of errors in a row, and Error the last of them.
	Failures int        `json:",omitzero"`
	Error    ErrorClass `json:",omitzero"`
	// Ended is the number of runs and failed tries that have ended.
	Ended int64 `json:",omitzero"`
	// Seen is the To of the last successful run, Swept the start of the last long run (see Options.SweepEvery), and
	// Floor the earliest time at which a run may begin without a report of older data (see Reach); only for News.
	Seen, Swept, Floor time.Time `json:",omitzero"`
	// Announced is when the provider last reported new data. Reach is the earliest time of reported data that no run
	// has fetched; only for News.
	Announced, Reach time.Time `json:",omitzero"`
	// ScheduledAt, StartedAt and EndedAt are the times of the run.
	ScheduledAt, StartedAt, EndedAt time.Time `json:",omitzero"`

	// Totals over the life of the task.

	// LastTry is when the last request was made, and LastOK whether it succeeded.
	LastTry time.Time `json:",omitzero"`
	LastOK  bool      `json:",omitzero"`
	// Oldest and Newest are the times of the oldest and the newest stored data.
	Oldest, Newest time.Time `json:",omitzero"`
	// Sent is the number of samples, summaries and streams that events have contained.
	Sent int64 `json:",omitzero"`
	// Stored is the number of samples, summaries and streams that were first stored on each UTC day, ascending: the
	// last [StoredDays] days with data.
	Stored []DayCount `json:",omitempty"`
	// Days has a bit for each day with data since From; only for History.
	Days []byte `json:",omitzero"`
}

// DayCount is the number of samples, summaries or streams that were first stored on a UTC day.
type DayCount struct {
	Day healthlab.Date `json:"date"`
	New int64          `json:"new"`
}

// StoredDays is the highest number of days in [Task].Stored and [Statistics].Stored.
const StoredDays = 14

// trace names the run in logs and traces: a trace-id of W3C Trace Context, 32 hexadecimal digits. A history has
// one id from its scheduling to its end; new data has one id for each fetch. All processes compute the same id.
func (t *Task) trace() string {
	at := t.ScheduledAt
	if t.Kind == News {
		at = t.StartedAt
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "trace %s %s %d %s %d %s %s %d", t.Team, t.User, len(t.Provider), t.Provider,
		len(t.Resource), t.Resource, t.Kind, at.UnixMicro()))
	return hex.EncodeToString(sum[:16])
}

// App returns the OAuth application whose rate limit a task's requests count against: the slug for the
// deployment's client, or slug, team and client id, with spaces between, for a team's own.
func (t *Task) App() string {
	if t.Client == "" {
		return t.Provider
	}
	return t.Provider + " " + t.Team.String() + " " + t.Client
}

func (t *Task) appBudget(name string) BudgetKey {
	if t.Client == "" {
		return BudgetKey{Provider: t.Provider, Name: name}
	}
	return BudgetKey{Team: t.Team, Provider: t.Provider, Name: name + " of " + t.Client}
}

// DaysWithData returns the number of days with data.
func (t *Task) DaysWithData() (n int) {
	for _, b := range t.Days {
		n += bits.OnesCount8(b)
	}
	return n
}

// historyDays returns the number of days of a history and the number of fetched days among them: all of a successful
// history; of a failed one those that were fetched before the failure.
func (t *Task) historyDays() (days, fetched int) {
	if !t.To.After(t.From) {
		return 0, 0
	}
	days = int((t.To.Sub(t.From) + day - 1) / day)
	switch {
	case t.Status == Success:
		return days, days
	case t.running():
		return days, int(t.To.Sub(t.Until) / day)
	}
	return days, 0
}

// maxDays is the greatest number of days of a history: 365, and some at its ends.
const maxDays = 400

// markDay records a day with data.
func (t *Task) markDay(day healthlab.Date) {
	n := int(day.At(time.UTC).Sub(healthlab.DateOf(t.From).At(time.UTC))/(24*time.Hour)) + 1 // a time zone may put a day before From
	if n < 0 || n >= maxDays {
		return
	}
	for len(t.Days) <= n/8 {
		t.Days = append(t.Days, 0)
	}
	t.Days[n/8] |= 1 << (n % 8)
}

// addReceived adds the counts of a page to the task and, for a history, the days with data.
func (t *Task) addReceived(got *healthdata.Received, now time.Time) {
	t.addCounts(got, now)
	if t.Kind == History {
		for _, d := range got.Days {
			t.markDay(d)
		}
	}
}

// addCounts adds the counts of a page or an upload to the task.
func (t *Task) addCounts(got *healthdata.Received, now time.Time) {
	t.Sent += int64(got.Sent)
	if !got.Oldest.IsZero() && (t.Oldest.IsZero() || got.Oldest.Before(t.Oldest)) {
		t.Oldest = got.Oldest
	}
	t.Newest = later(t.Newest, got.Newest)
	if got.New > 0 {
		t.Stored = addDay(t.Stored, DayCount{healthlab.DateOf(now.UTC()), int64(got.New)})
	}
}

// addDay returns a new slice with a count added, limited to the last [StoredDays] days.
func addDay(list []DayCount, add DayCount) []DayCount {
	list = slices.Clone(list)
	at, found := slices.BinarySearchFunc(list, add.Day, func(c DayCount, day healthlab.Date) int { return c.Day.Compare(day) })
	if found {
		list[at].New += add.New
	} else {
		list = slices.Insert(list, at, add)
	}
	return list[max(0, len(list)-StoredDays):]
}

func (t *Task) running() bool { return !t.Until.IsZero() }

// begin starts a run, unless one is running. A run of new data begins at Seen at the latest, and usually
// Options.Overlap or Options.SweepBack earlier. While the history is running (historyOver is false), and in the first
// run, it does not begin before the link, unless Seen is before the link. After the history, a report of older data
// (Reach) moves the beginning back.
func (t *Task) begin(now time.Time, historyOver bool, o *Options) {
	if t.running() {
		return
	}
	t.StartedAt, t.EndedAt = now, time.Time{}
	if t.Kind == News {
		t.To, t.From = now, t.Seen.Add(-o.Overlap)
		floor := t.Linked
		if historyOver && t.Seen.After(t.Linked) { // not the first fetch
			floor = t.Floor
			if now.Sub(t.Swept) >= o.SweepEvery {
				t.From = earlier(t.From, now.Add(-o.SweepBack))
				t.Swept = now
			}
		}
		t.From = earlier(t.Seen, later(t.From, floor))
		if historyOver && !t.Reach.IsZero() {
			t.From = earlier(t.From, t.Reach)
		}
	}
	t.Until = t.To
}

func (t *Task) piece() (from, to time.Time) {
	// Parts of a range meet at whole seconds, because most providers accept only whole seconds.
	start := t.Until.Add(-piece + time.Second - time.Nanosecond).Truncate(time.Second)
	return later(t.From, start), t.Until
}

// advance records that a page was stored. next is the cursor of the next page; empty if it was the last page of its
// part. advance reports whether the run has ended.
func (t *Task) advance(next string, now time.Time, o *Options) bool {
	t.Failures, t.Error = 0, ""
	t.LastTry, t.LastOK = now, true
	t.Status = InProgress
	t.Due, t.Lease = now, time.Time{}
	t.Turn += t.Step
	if next != "" {
		t.Cursor = next
		return false
	}
	t.Until, _ = t.piece()
	t.Cursor = ""
	if t.Until.After(t.From) {
		return false
	}
	t.end(now, o)
	return true
}

// end records that a run has fetched its whole range and, for new data, schedules the next run.
func (t *Task) end(now time.Time, o *Options) {
	t.Status, t.EndedAt, t.Until, t.Cursor = Success, now, time.Time{}, ""
	t.Ended++
	t.Lease, t.Due = time.Time{}, time.Time{}
	if t.Kind == News {
		t.Seen, t.Turn = t.To, 0
		t.Due = t.next(now, o)
		if t.hasNewNotice() { // a notice arrived during this run
			t.Due = now
		} else if !t.Reach.Before(t.From) {
			t.Reach = time.Time{}
		}
	}
}

// next returns when the next run of new data is due: about Options.Every after now, for devices Options.SweepEvery. The
// exact time depends on the user, so that people who connected together are not fetched together.
func (t *Task) next(now time.Time, o *Options) time.Time {
	every := o.Every
	if t.Resource == deviceSlug { // devices change rarely
		every = o.SweepEvery
	}
	spread := time.Duration(t.User.UUID[7]) * every / (8 * 256)
	return now.Add(every - every/16 + spread)
}

// maxFailures is the number of errors in a row after which a history is given up: about two days.
const maxFailures = 60

// fail records an error of a request, and sets the time of the next try: after wait, or after a growing delay if wait
// is 0. It reports whether the error is final: no retry follows, except by the next run of new data.
func (t *Task) fail(class ErrorClass, wait time.Duration, now time.Time, o *Options) bool {
	t.LastTry, t.LastOK = now, false
	t.Lease = time.Time{}
	t.Failures++
	t.Ended++
	t.Error = class
	final := class == NonRetriable || class == Unexpected
	if class != RateLimited && t.Failures >= maxFailures && t.Kind == History {
		t.Error, final = QuotaExhausted, true
	}
	if wait <= 0 {
		wait = min(15*time.Second<<min(t.Failures-1, 8), time.Hour)
	}
	switch {
	case !final:
		t.Status, t.Due = Retrying, now.Add(wait)
	case t.Kind == News: // the next fetch of new data tries again
		t.Status, t.Until, t.Cursor = Failure, time.Time{}, ""
		t.Turn, t.Due = 0, t.next(now, o)
	default:
		t.Status, t.EndedAt, t.Due = Failure, now, time.Time{}
	}
	return final
}

func (t *Task) stop() { t.Due, t.Lease = time.Time{}, time.Time{} }

// maxReach is the greatest age of data that a pull requests again because the provider has reported a change of it.
const maxReach = 90 * 24 * time.Hour

// announceNews records that the provider has reported new data from the instant since on, and makes the task due at
// once. A zero since means recent data.
func (t *Task) announceNews(since, now time.Time) {
	t.Announced, t.Due = now, earlier(t.Due, now)
	if since.IsZero() {
		return
	}
	if since = later(since, now.Add(-maxReach)); t.Reach.IsZero() || since.Before(t.Reach) {
		t.Reach = since
	}
}

func (t *Task) hasNewNotice() bool { return t.Announced.After(t.StartedAt) }

// Resources that only some pullers support.
const (
	deviceSlug = "device"
	streamSlug = "workout_stream"
)

func withoutEvents(change func(*Task)) func(*Task) ([]healthlab.Event, error) {
	return func(t *Task) ([]healthlab.Event, error) {
		change(t)
		return nil, nil
	}
}
