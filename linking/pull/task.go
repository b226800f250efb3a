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

// TaskKind says what a task fetches.
type TaskKind string

const (
	// History is what was recorded before the source was connected.
	History TaskKind = "history"
	// News is what comes after, again and again.
	News TaskKind = "news"
	// Uploads is what comes without being asked for. Its task is never due, and only counts.
	Uploads TaskKind = "uploads"
)

// Status is where a task stands.
type Status string

const (
	// Scheduled: it waits for its turn, and nothing of it was fetched yet.
	Scheduled Status = "scheduled"
	// InProgress: some of it was fetched.
	InProgress Status = "in_progress"
	// Retrying: it waits after an error that may pass.
	Retrying Status = "retrying"
	// Success: all of it was fetched.
	Success Status = "success"
	// Failure: it was given up, or nothing that it brought could be kept.
	Failure Status = "failure"
)

// ErrorClass says why a task waits, or was given up.
type ErrorClass string

// The first four may pass, the others do not.
const (
	RateLimited      ErrorClass = "provider_rate_limit_exceeded"
	ProviderDown     ErrorClass = "provider_unavailable"
	TransportFailure ErrorClass = "transport_failure"
	Contention       ErrorClass = "resource_contention"
	NonRetriable     ErrorClass = "non_retriable_error"
	Unexpected       ErrorClass = "unexpected_error"
	QuotaExhausted   ErrorClass = "retry_quota_exhausted"
)

// Ref names a connection.
type Ref struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
}

// LogValue shows ids and names.
func (r Ref) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", r.User.String()), slog.String("provider", r.Provider))
}

// Key names a task.
type Key struct {
	Ref
	Resource string
	Kind     TaskKind
}

// LogValue shows ids and names.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", k.User.String()), slog.String("provider", k.Provider),
		slog.String("resource", k.Resource), slog.String("kind", string(k.Kind)))
}

// Task is what is to be fetched of one resource, and how far that is. Instants are in UTC;
// the zero time means never.
type Task struct {
	Key
	// Linked is when the connection was linked that the task was planned for.
	Linked time.Time `json:",omitzero"`
	// Client is the id of the team's own client at the provider that the connection is
	// bound to; empty for the deployment's.
	Client string `json:",omitempty"`
	// Lead is the resource whose task brings this history along; empty if it is fetched by itself.
	Lead   string `json:",omitempty"`
	Status Status
	// From and To bound what this run fetches. What lies between Until and To was fetched;
	// a run that has not begun has no Until.
	From, To, Until time.Time `json:",omitzero"`
	// Cursor is how far it is in the piece before Until.
	Cursor string `json:",omitzero"`
	// Turn orders tasks that are due, the lowest first, and Step is how much a turn costs.
	Turn, Step int64 `json:",omitzero"`
	// Due is when it is to go on; zero if it is not to.
	Due time.Time `json:",omitzero"`
	// Lease is until when, on the store's clock, a process has it; zero if none has. Fence
	// counts the claims.
	Lease time.Time `json:",omitzero"`
	Fence int64     `json:",omitzero"`
	// Failures counts the errors in a row, and Error is the last of them.
	Failures int        `json:",omitzero"`
	Error    ErrorClass `json:",omitzero"`
	// Ended counts the tries that came to an end, well or not.
	Ended int64 `json:",omitzero"`
	// Seen is until when everything was fetched, Swept when the task last looked far back,
	// and Floor how far back it may look at all; of News alone.
	Seen, Swept, Floor time.Time `json:",omitzero"`
	// Announced is when the provider last said that there is something new, and Reach the
	// earliest of it that no run has covered; of News alone.
	Announced, Reach time.Time `json:",omitzero"`
	// ScheduledAt, StartedAt and EndedAt are when this run was.
	ScheduledAt, StartedAt, EndedAt time.Time `json:",omitzero"`

	// What it has brought in its life.

	// LastTry is when a request was last made, and LastOK whether it went well.
	LastTry time.Time `json:",omitzero"`
	LastOK  bool      `json:",omitzero"`
	// Oldest and Newest bound what was stored.
	Oldest, Newest time.Time `json:",omitzero"`
	// Sent counts the objects that were announced.
	Sent int64 `json:",omitzero"`
	// Stored counts what was new by the UTC day on which it came, ascending; of the last
	// [StoredDays] days that have any.
	Stored []DayCount `json:",omitempty"`
	// Days has a bit for each day with data since From; of History alone.
	Days []byte `json:",omitzero"`
}

// DayCount is how many samples, summaries or streams were stored for the first time on a UTC day.
type DayCount struct {
	Day healthlab.Date `json:"date"`
	New int64          `json:"new"`
}

// StoredDays is how many days of [DayCount] are kept.
const StoredDays = 14

// Trace names the run in logs and traces: a trace-id of W3C Trace Context, 32 hexadecimal
// digits. A history has one from when it is scheduled until it is over; news have one for
// each time they are looked for. All processes give a run the same.
func (t *Task) Trace() string {
	at := t.ScheduledAt
	if t.Kind == News {
		at = t.StartedAt
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "trace %s %s %d %s %d %s %s %d", t.Team, t.User, len(t.Provider), t.Provider,
		len(t.Resource), t.Resource, t.Kind, at.UnixMicro()))
	return hex.EncodeToString(sum[:16])
}

// App names the application that a provider counts the task's requests for: the slug alone
// for the deployment's, and slug, team and client id, with spaces between, for a team's own.
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

// DaysWithData counts them.
func (t *Task) DaysWithData() (n int) {
	for _, b := range t.Days {
		n += bits.OnesCount8(b)
	}
	return n
}

// historyDays returns how many days the range of a history has, and how many of them are fetched. All are of
// one that succeeded, and none of one that was given up.
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

// maxDays is how many days a history can have at most: 365, and some at its ends.
const maxDays = 400

// markDay notes a day with data.
func (t *Task) markDay(day healthlab.Date) {
	n := int(day.At(time.UTC).Sub(healthlab.DateOf(t.From).At(time.UTC))/(24*time.Hour)) + 1 // zones put a day before From
	if n < 0 || n >= maxDays {
		return
	}
	for len(t.Days) <= n/8 {
		t.Days = append(t.Days, 0)
	}
	t.Days[n/8] |= 1 << (n % 8)
}

// addReceived notes what a page brought.
func (t *Task) addReceived(got *healthdata.Received, now time.Time) {
	t.addCounts(got, now)
	if t.Kind == History {
		for _, d := range got.Days {
			t.markDay(d)
		}
	}
}

// addCounts adds what a page or an upload brought.
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

// addDay returns the counts with another one, the last [StoredDays] of them, as a new slice.
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

// begin starts a run, if none is under way. News never leave out what was not seen; how
// far they look back beyond that is bounded, and by the link itself as long as the history
// is not over, for what history finds is not news.
func (t *Task) begin(now time.Time, historyOver bool, o *Options) {
	if t.running() {
		return
	}
	t.StartedAt, t.EndedAt = now, time.Time{}
	if t.Kind == News {
		t.To, t.From = now, t.Seen.Add(-o.Overlap)
		floor := t.Linked
		if historyOver && t.Seen.After(t.Linked) { // it is not the first time
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
	// Pieces meet at whole seconds, in which most providers are asked, so that none begins or ends with a
	// request for a fraction of one.
	start := t.Until.Add(-piece + time.Second - time.Nanosecond).Truncate(time.Second)
	return later(t.From, start), t.Until
}

// advance notes a page. It reports whether the run has come to its end.
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

// end ends a run that fetched all of its range.
func (t *Task) end(now time.Time, o *Options) {
	t.Status, t.EndedAt, t.Until, t.Cursor = Success, now, time.Time{}, ""
	t.Ended++
	t.Lease, t.Due = time.Time{}, time.Time{}
	if t.Kind == News {
		t.Seen, t.Turn = t.To, 0
		t.Due = t.next(now, o)
		if t.hasUnseenNews() { // it came while this run was under way
			t.Due = now
		} else if !t.Reach.Before(t.From) {
			t.Reach = time.Time{}
		}
	}
}

// next is when news are looked for again: at a moment of its own in the interval, so that
// people who connected together do not come together for ever.
func (t *Task) next(now time.Time, o *Options) time.Time {
	every := o.Every
	if t.Resource == deviceSlug { // people do not get a new one every day
		every = o.SweepEvery
	}
	spread := time.Duration(t.User.UUID[7]) * every / (8 * 256)
	return now.Add(every - every/16 + spread)
}

// maxFailures is how many errors in a row a history withstands: about two days of them.
const maxFailures = 60

// fail notes an error. It reports whether the task was given up.
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
	case t.Kind == News: // it has another chance when the next news come
		t.Status, t.Until, t.Cursor = Failure, time.Time{}, ""
		t.Turn, t.Due = 0, t.next(now, o)
	default:
		t.Status, t.EndedAt, t.Due = Failure, now, time.Time{}
	}
	return final
}

func (t *Task) stop() { t.Due, t.Lease = time.Time{}, time.Time{} }

// maxReach is how far back a notice makes us look.
const maxReach = 90 * 24 * time.Hour

// noteNews makes news be looked for at once, and as far back as since.
func (t *Task) noteNews(since, now time.Time) {
	t.Announced, t.Due = now, earlier(t.Due, now)
	if since.IsZero() {
		return
	}
	if since = later(since, now.Add(-maxReach)); t.Reach.IsZero() || since.Before(t.Reach) {
		t.Reach = since
	}
}

func (t *Task) hasUnseenNews() bool { return t.Announced.After(t.StartedAt) }

// Resources that only some pullers know.
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
