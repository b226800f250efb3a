package healthdatatest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// brokenDataStores are stores that break one promise each.
var brokenDataStores = []conformance.Broken{
	{Name: "puts into other teams", Suite: spoiltData(putsAnywhere), Subtest: "Put/NoSuchUser"},
	{Name: "merges into other teams", Suite: spoiltData(mergesAnywhere), Subtest: "Merge/NoSuchUser"},
	{Name: "finds what other teams have", Suite: spoiltData(findsAnywhere), Subtest: "Find/Teams"},
	{Name: "keeps all users' data together", Suite: spoiltData(oneForAll), Subtest: "Merge/Users"},
	{Name: "drops the events of records", Suite: spoiltData(dropsRecordEvents), Subtest: "Events/Written"},
	{Name: "drops the events of samples", Suite: spoiltData(dropsSampleEvents), Subtest: "Events/Seq"},
	{Name: "writes before it asks for events", Suite: spoiltData(putsFirst), Subtest: "Put/ErrorOfEvents"},
	{Name: "merges before it asks for events", Suite: spoiltData(mergesFirst), Subtest: "Merge/ErrorOfEvents"},
	{Name: "keeps data without its events", Suite: spoiltData(putsFirst), Subtest: "Events/AllOrNothing"},
	{Name: "keeps samples without events", Suite: spoiltData(mergesFirst), Subtest: "Events/AllOrNothing"},
	{Name: "keeps the caller's bytes", Suite: spoiltData(keepsBytes), Subtest: "Put/Aliasing"},
	{Name: "keeps the caller's columns", Suite: spoiltData(keepsColumns), Subtest: "Merge/Aliasing"},
	{Name: "loses records", Suite: spoiltData(losesRecords), Subtest: "Put/NoLostUpdates"},
	{Name: "loses samples", Suite: spoiltData(losesSamples), Subtest: "Merge/NoLostUpdates"},
	{Name: "puts over any version", Suite: spoiltData(putsOverAnyVersion), Subtest: "Put/Replaces"},
	{Name: "compares before it writes", Suite: spoiltData(putsAfterALook), Subtest: "Put/ReplacesRace"},
	{Name: "puts without its caller", Suite: spoiltData(putsWithoutCaller), Subtest: "Context/Ended"},
	{Name: "merges without its caller", Suite: spoiltData(mergesWithoutCaller), Subtest: "Context/Ended"},
	{Name: "looks without its caller", Suite: spoiltData(looksWithoutCaller), Subtest: "Context/Ended"},
	{Name: "finds without its caller", Suite: spoiltData(findsWithoutCaller), Subtest: "Context/Ended"},
	{Name: "forgets when a record was made", Suite: spoiltData(forgetsCreatedAt), Subtest: "Put/Changed"},
	{Name: "takes the same for changed", Suite: spoiltData(sameIsChanged), Subtest: "Put/Same"},
	{Name: "takes same samples for changed", Suite: spoiltData(sameSamplesAreChanged), Subtest: "Merge/Same"},
	{Name: "drops the offset of records", Suite: spoiltData(dropsOffset), Subtest: "Put/EveryField"},
	{Name: "drops payloads", Suite: spoiltData(dropsRaw), Subtest: "Put/EveryField"},
	{Name: "drops the end of samples", Suite: spoiltData(dropsEnd), Subtest: "Merge/EveryField"},
	{Name: "drops attributes of samples", Suite: spoiltData(dropsAttributes), Subtest: "Merge/EveryField"},
	{Name: "keeps the first record", Suite: spoiltData(firstRecordWins), Subtest: "Put/Changed"},
	{Name: "keeps the first sample", Suite: spoiltData(firstSampleWins), Subtest: "Merge/LatestWins"},
	{Name: "answers records in its own order", Suite: spoiltData(resultsByID), Subtest: "Put/Results"},
	{Name: "answers series in its own order", Suite: spoiltData(outcomesByKey), Subtest: "Merge/Results"},
	{Name: "takes two records of one id", Suite: spoiltData(lastTwinWins), Subtest: "Put/Refused"},
	{Name: "takes two batches of one series", Suite: spoiltData(lastBatchWins), Subtest: "Merge/Refused"},
	{Name: "folds the case of keys", Suite: spoiltData(foldsKeys), Subtest: "Merge/Keys"},
	{Name: "cuts large batches", Suite: spoiltData(cutsBatches), Subtest: "Merge/Dense"},
	{Name: "sees writes while it looks", Suite: spoiltData(seesWrites), Subtest: "View/Consistent"},
	{Name: "hides the error of a reader", Suite: spoiltData(hidesReadErrors), Subtest: "View/Error"},
	{Name: "sorts records by id", Suite: spoiltData(sortsByID), Subtest: "Records/Order"},
	{Name: "leaves the last instant out", Suite: spoiltData(excludesTo), Subtest: "Records/Filters"},
	{Name: "removes nothing that is pending", Suite: spoiltData(removesNothing), Subtest: "Remove/Samples"},
	{Name: "removes whole ranges", Suite: spoiltData(removesRanges), Subtest: "Remove/OthersStay"},
	{Name: "removes what others have", Suite: spoiltData(removesAnywhere), Subtest: "Remove/NoSuchUser"},
	{Name: "removes what another app wrote", Suite: spoiltData(removesOfAnyApp), Subtest: "Remove/OfOneApp"},
	{Name: "leaves records where they are", Suite: spoiltData(keepsRecords), Subtest: "Remove/Records"},
	{Name: "forgets the days of what it removes", Suite: spoiltData(forgetsDays), Subtest: "Remove/Days"},
	{Name: "forgets whose data it removes", Suite: spoiltData(forgetsWhose), Subtest: "Remove/Days"},
	{Name: "announces no removal", Suite: spoiltData(removesInSilence), Subtest: "Remove/Events"},
	{Name: "leaves parts of what it did not find", Suite: spoiltData(keepsParts), Subtest: "Remove/Parts"},
	{Name: "removes times in any order", Suite: spoiltData(sortsTimes), Subtest: "Remove/Refused"},
	{Name: "gives payloads to all", Suite: spoiltData(alwaysRaw), Subtest: "Records/Filters"},
	{Name: "gives chunks with their data", Suite: spoiltData(withData), Subtest: "Series/Ranges"},
	{Name: "gives series outside the range", Suite: spoiltData(ignoresRange), Subtest: "Series/Ranges"},
	{Name: "makes chunks up", Suite: spoiltData(makesChunksUp), Subtest: "Load/NotFound"},
}

// spoiltData returns the suite over stores that were broken in one way.
func spoiltData(how func(*brokenData)) func(*testing.T) {
	return func(t *testing.T) {
		healthdatatest.RunData(t, func(testing.TB) healthdatatest.DataHarness {
			store := memory.New(nil)
			b := &brokenData{overriddenData: overriddenData{Data: store.Data()}, users: &usersSeen{Users: store.Users(), teams: map[healthlab.UserID]healthlab.TeamID{}}}
			how(b)
			return healthdatatest.DataHarness{Data: b, Users: b.users, Messages: store.WebhookLog()}
		})
	}
}

type (
	putEvents   = func([]healthdata.PutResult) ([]healthlab.Event, error)
	mergeEvents = func([]series.Outcome) ([]healthlab.Event, error)
)

// brokenData is a store with some of its methods replaced.
type brokenData struct {
	overriddenData
	users *usersSeen
	mu    sync.Mutex

	look func(context.Context, healthlab.TeamID, healthlab.UserID, func(healthdata.View) error) error

	view func(healthdata.View) healthdata.View
}

func (b *brokenData) View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
	if b.look != nil {
		return b.look(ctx, team, user, read)
	}
	return b.Data.View(ctx, team, user, func(v healthdata.View) error {
		if b.view != nil {
			v = b.view(v)
		}
		return read(v)
	})
}

// usersSeen remembers whose users there are, for stores that do not look.
type usersSeen struct {
	healthdata.Users
	mu    sync.Mutex
	teams map[healthlab.UserID]healthlab.TeamID
	deaf  bool // hears of no deletion
}

func (u *usersSeen) Insert(ctx context.Context, user healthdata.User, limit int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.teams[user.ID] = user.Team
	return u.Users.Insert(ctx, user, limit)
}

func (u *usersSeen) teamOf(id healthlab.UserID) healthlab.TeamID {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.teams[id]
}

func removesNothing(b *brokenData) {
	b.remove = func(_ context.Context, _ healthlab.TeamID, _ healthlab.UserID, r healthdata.Removal) (int, error) {
		return len(r.Samples[0].Times), nil
	}
}

func removesRanges(b *brokenData) {
	b.remove = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
		if len(r.Samples) == 1 && len(r.Samples[0].Times) > 1 {
			all := r.Samples[0]
			all.Times = nil
			for t := r.Samples[0].Times[0]; t <= r.Samples[0].Times[len(r.Samples[0].Times)-1]; t += 60_000_000 {
				all.Times = append(all.Times, t)
			}
			r.Samples = []healthdata.SampleRemoval{all}
		}
		return b.Data.Remove(ctx, team, user, r)
	}
}

func removesOfAnyApp(b *brokenData) {
	b.remove = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
		r.Samples = slices.Clone(r.Samples)
		for i := range r.Samples {
			r.Samples[i].App = ""
		}
		return b.Data.Remove(ctx, team, user, r)
	}
}

func removesAnywhere(b *brokenData) {
	b.remove = func(ctx context.Context, _ healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
		return b.Data.Remove(ctx, b.users.teamOf(user), user, r)
	}
}

func forgetsDays(b *brokenData) {
	b.removedDays = func(context.Context, healthlab.TeamID, healthlab.UserID, time.Time) ([]healthdata.RemovedDay, error) {
		return nil, nil
	}
}

func forgetsWhose(b *brokenData) {
	b.removedUsers = func(context.Context, healthlab.TeamID, time.Time) ([]healthlab.UserID, error) { return nil, nil }
}

func removesInSilence(b *brokenData) {
	b.remove = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
		r.Events = nil
		return b.Data.Remove(ctx, team, user, r)
	}
}

func keepsRecords(b *brokenData) {
	b.remove = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
		n := len(r.IDs)
		r.IDs = nil
		m, err := b.Data.Remove(ctx, team, user, r)
		return n + m, err
	}
}

func keepsParts(b *brokenData) {
	b.remove = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
		whole := r
		whole.PartIDs = nil
		n, err := b.Data.Remove(ctx, team, user, whole)
		if err != nil || n == 0 {
			return n, err
		}
		_, err = b.Data.Remove(ctx, team, user, r)
		return n, err
	}
}

func sortsTimes(b *brokenData) {
	b.remove = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
		for i := range r.Samples {
			t := slices.Clone(r.Samples[i].Times)
			slices.Sort(t)
			r.Samples[i].Times = slices.Compact(t)
		}
		return b.Data.Remove(ctx, team, user, r)
	}
}

func putsAnywhere(b *brokenData) {
	b.putRecords = func(ctx context.Context, _ healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		return b.Data.PutRecords(ctx, b.users.teamOf(user), user, records, events)
	}
}

func mergesAnywhere(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, _ healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		return b.Data.MergeSamples(ctx, b.users.teamOf(user), user, batches, events)
	}
}

func findsAnywhere(b *brokenData) {
	b.find = func(ctx context.Context, _ healthlab.TeamID, resource string, id uuid.UUID) (user healthlab.UserID, r healthdata.Record, err error) {
		err = healthlab.NotFound
		for _, team := range b.users.teams {
			if user, r, err = b.Data.Find(ctx, team, resource, id); err == nil {
				return user, r, nil
			}
		}
		return user, r, err
	}
}

func oneForAll(b *brokenData) {
	var first healthlab.UserID
	only := func(user healthlab.UserID) (healthlab.TeamID, healthlab.UserID) {
		if first.IsZero() {
			first = user
		}
		return b.users.teamOf(first), first
	}
	b.mergeSamples = func(ctx context.Context, _ healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		team, user := only(user)
		return b.Data.MergeSamples(ctx, team, user, batches, events)
	}
	b.look = func(ctx context.Context, _ healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
		team, user := only(user)
		return b.Data.View(ctx, team, user, read)
	}
}

func dropsRecordEvents(b *brokenData) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		return b.Data.PutRecords(ctx, team, user, records, func(r []healthdata.PutResult) ([]healthlab.Event, error) {
			_, err := events(r)
			return nil, err
		})
	}
}

func dropsSampleEvents(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		return b.Data.MergeSamples(ctx, team, user, batches, func(o []series.Outcome) ([]healthlab.Event, error) {
			_, err := events(o)
			return nil, err
		})
	}
}

// putsFirst writes records in one commit and their events in the next.
func putsFirst(b *brokenData) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		var results []healthdata.PutResult
		err := b.Data.PutRecords(ctx, team, user, records, func(r []healthdata.PutResult) ([]healthlab.Event, error) {
			results = r
			return nil, nil
		})
		if err != nil || events == nil {
			return err
		}
		return b.Data.PutRecords(ctx, team, user, records, func([]healthdata.PutResult) ([]healthlab.Event, error) { return events(results) })
	}
}

// mergesFirst does the same with samples.
func mergesFirst(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		var outcomes []series.Outcome
		err := b.Data.MergeSamples(ctx, team, user, batches, func(o []series.Outcome) ([]healthlab.Event, error) {
			outcomes = o
			return nil, nil
		})
		if err != nil || events == nil {
			return err
		}
		return b.Data.MergeSamples(ctx, team, user, batches, func([]series.Outcome) ([]healthlab.Event, error) { return events(outcomes) })
	}
}

func keepsBytes(b *brokenData) {
	kept := map[uuid.UUID]healthdata.Record{}
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		for _, r := range records {
			kept[r.ID] = r
		}
		return b.Data.PutRecords(ctx, team, user, records, events)
	}
	b.find = func(ctx context.Context, team healthlab.TeamID, resource string, id uuid.UUID) (healthlab.UserID, healthdata.Record, error) {
		user, _, err := b.Data.Find(ctx, team, resource, id)
		return user, kept[id], err
	}
}

// keepsColumns keeps the caller's columns and writes them only at the next read.
func keepsColumns(b *brokenData) {
	var waiting [][]healthdata.SampleBatch
	b.mergeSamples = func(_ context.Context, _ healthlab.TeamID, _ healthlab.UserID, batches []healthdata.SampleBatch, _ mergeEvents) error {
		waiting = append(waiting, batches)
		return nil
	}
	b.look = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
		for _, batches := range waiting {
			if err := b.Data.MergeSamples(ctx, team, user, batches, nil); err != nil {
				return err
			}
		}
		return b.Data.View(ctx, team, user, read)
	}
}

// alone runs write, unless another write is under way: then it is lost.
func (b *brokenData) alone(write func() error) error {
	if !b.mu.TryLock() {
		return nil
	}
	defer b.mu.Unlock()
	conformance.Pause()
	return write()
}

func losesRecords(b *brokenData) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		return b.alone(func() error { return b.Data.PutRecords(ctx, team, user, records, events) })
	}
}

func losesSamples(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		return b.alone(func() error { return b.Data.MergeSamples(ctx, team, user, batches, events) })
	}
}

// putsOverAnyVersion does not look at what a record replaces.
func putsOverAnyVersion(b *brokenData) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		records = slices.Clone(records)
		for i := range records {
			records[i].Replaces = nil
		}
		return b.Data.PutRecords(ctx, team, user, records, events)
	}
}

// putsAfterALook compares what a record replaces before the write, not in it.
func putsAfterALook(b *brokenData) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		records = slices.Clone(records)
		for i := range records {
			want := records[i].Replaces
			if want == nil {
				continue
			}
			_, old, err := b.Find(ctx, team, records[i].Resource, records[i].ID)
			if err != nil && !errors.Is(err, healthlab.NotFound) {
				return err
			}
			if !bytes.Equal(want, old.Doc) {
				return healthlab.Precondition
			}
			time.Sleep(time.Millisecond) // the others look meanwhile
			records[i].Replaces = nil
		}
		return b.Data.PutRecords(ctx, team, user, records, events)
	}
}

func putsWithoutCaller(b *brokenData) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		return b.Data.PutRecords(context.WithoutCancel(ctx), team, user, records, events)
	}
}

func mergesWithoutCaller(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		return b.Data.MergeSamples(context.WithoutCancel(ctx), team, user, batches, events)
	}
}

func looksWithoutCaller(b *brokenData) {
	b.look = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
		return b.Data.View(context.WithoutCancel(ctx), team, user, read)
	}
}

func findsWithoutCaller(b *brokenData) {
	b.find = func(ctx context.Context, team healthlab.TeamID, resource string, id uuid.UUID) (healthlab.UserID, healthdata.Record, error) {
		return b.Data.Find(context.WithoutCancel(ctx), team, resource, id)
	}
}

// retell changes what a store says of records that it has written.
func (b *brokenData) retell(change func([]healthdata.Record, []healthdata.PutResult)) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		return b.Data.PutRecords(ctx, team, user, records, func(r []healthdata.PutResult) ([]healthlab.Event, error) {
			r = slices.Clone(r)
			change(records, r)
			return events(r)
		})
	}
}

func forgetsCreatedAt(b *brokenData) {
	b.retell(func(records []healthdata.Record, results []healthdata.PutResult) {
		for i := range results {
			results[i].CreatedAt = records[i].CreatedAt
		}
	})
}

func sameIsChanged(b *brokenData) {
	b.retell(func(_ []healthdata.Record, results []healthdata.PutResult) {
		for i := range results {
			if results[i].Outcome == healthdata.PutSame {
				results[i].Outcome = healthdata.PutChanged
			}
		}
	})
}

func resultsByID(b *brokenData) {
	b.retell(func(records []healthdata.Record, results []healthdata.PutResult) {
		byID := map[uuid.UUID]healthdata.PutResult{}
		ids := make([]uuid.UUID, len(records))
		for i := range records {
			ids[i] = records[i].ID
			byID[ids[i]] = results[i]
		}
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
		for i, id := range ids {
			results[i] = byID[id]
		}
	})
}

func sameSamplesAreChanged(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		return b.Data.MergeSamples(ctx, team, user, batches, func(o []series.Outcome) ([]healthlab.Event, error) {
			for i := range o {
				o[i].Changed, o[i].Same = o[i].Changed+o[i].Same, 0
			}
			return events(o)
		})
	}
}

func outcomesByKey(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		sorted := slices.Clone(batches)
		slices.SortFunc(sorted, func(a, b healthdata.SampleBatch) int { return a.Key.Compare(b.Key) })
		return b.Data.MergeSamples(ctx, team, user, sorted, events)
	}
}

// rewrite changes records before they are written.
func (b *brokenData) rewrite(change func(*healthdata.Record)) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		records = slices.Clone(records)
		for i := range records {
			change(&records[i])
		}
		return b.Data.PutRecords(ctx, team, user, records, events)
	}
}

func dropsOffset(b *brokenData) { b.rewrite(func(r *healthdata.Record) { r.Offset = 0 }) }
func dropsRaw(b *brokenData)    { b.rewrite(func(r *healthdata.Record) { r.Raw = nil }) }

// resample changes samples before they are written; those that change refuses are
// left out.
func (b *brokenData) resample(change func(healthdata.SeriesKey, *series.Sample) bool) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		var out []healthdata.SampleBatch
		for _, batch := range batches {
			var build series.Builder
			for _, s := range batch.Samples.All() {
				if change(batch.Key, &s) {
					build.Add(s)
				}
			}
			batch.Samples = build.Block()
			out = append(out, batch)
		}
		return b.Data.MergeSamples(ctx, team, user, out, events)
	}
}

func dropsEnd(b *brokenData) {
	b.resample(func(_ healthdata.SeriesKey, s *series.Sample) bool {
		s.End = series.NoEnd
		return true
	})
}

func dropsAttributes(b *brokenData) {
	b.resample(func(_ healthdata.SeriesKey, s *series.Sample) bool {
		s.Attrs = series.Attrs{Offset: s.Offset, Type: s.Type}
		return true
	})
}

func firstSampleWins(b *brokenData) {
	type at struct {
		key  healthdata.SeriesKey
		time int64
	}
	seen := map[at]bool{}
	b.resample(func(key healthdata.SeriesKey, s *series.Sample) bool {
		k := at{key, s.Time}
		known := seen[k]
		seen[k] = true
		return !known
	})
}

func cutsBatches(b *brokenData) {
	n := 0
	b.resample(func(healthdata.SeriesKey, *series.Sample) bool {
		n++
		return n%3_000 != 0
	})
}

func firstRecordWins(b *brokenData) {
	seen := map[uuid.UUID]bool{}
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		if len(records) == 1 && seen[records[0].ID] {
			_, r, err := b.Data.Find(ctx, team, records[0].Resource, records[0].ID)
			if err != nil {
				return err
			}
			_, err = events([]healthdata.PutResult{{Outcome: healthdata.PutChanged, CreatedAt: r.CreatedAt}})
			return err
		}
		seen[records[0].ID] = true
		return b.Data.PutRecords(ctx, team, user, records, events)
	}
}

func lastTwinWins(b *brokenData) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		var out []healthdata.Record
		for i, r := range records {
			if !slices.ContainsFunc(records[i+1:], func(o healthdata.Record) bool { return o.ID == r.ID }) {
				out = append(out, r)
			}
		}
		return b.Data.PutRecords(ctx, team, user, out, events)
	}
}

func lastBatchWins(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		var out []healthdata.SampleBatch
		for i, batch := range batches {
			if !slices.ContainsFunc(batches[i+1:], func(o healthdata.SampleBatch) bool { return o.Key == batch.Key }) {
				out = append(out, batch)
			}
		}
		return b.Data.MergeSamples(ctx, team, user, out, events)
	}
}

func foldsKeys(b *brokenData) {
	b.mergeSamples = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
		batches = slices.Clone(batches)
		for i := range batches {
			batches[i].Key.Part = strings.ToLower(batches[i].Key.Part)
		}
		return b.Data.MergeSamples(ctx, team, user, batches, events)
	}
}
