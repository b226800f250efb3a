package healthdata

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/store"
)

// RemovedDay is a day from which data of a user was removed. The day may still have other data, or data that was stored
// later.
type RemovedDay struct {
	Resource   string
	SourceType SourceType
	// Day is the local day of a removed sample. For a removed record it is the local day of its index time or its
	// calendar date.
	Day healthlab.Date
	// Hours has a bit for each hour of the day from which a sample was removed; the lowest bit is the hour after
	// midnight.
	Hours uint32
}

// removedRow lists the days of one month from which data of one resource and source type was removed. It does not
// contain the removed data.
type removedRow struct {
	owner
	removedDoc
}

// removedDoc is the document of a removedRow.
type removedDoc struct {
	Resource   string                 `json:"r"`
	SourceType SourceType             `json:"s"`
	Month      string                 `json:"m"`
	Days       map[string]removedTime `json:"d"`
}

// removedTime is when data of a day was last removed, by the store's clock, and the hours of all removed samples.
type removedTime struct {
	At    time.Time `json:"t"`
	Hours uint32    `json:"h,omitempty"`
}

func (o owner) removedID(resource string, source SourceType, month string) string {
	return resourceID(o.user, resource) + store.Text(string(source)) + month
}

// removedTable has the days with removed data, indexed by the time of the last removal.
var removedTable = store.Table[removedRow]{
	Name: "removed", PerUser: true,
	Row: func(r *removedRow) store.Row {
		var last time.Time
		for _, day := range r.Days {
			if day.At.After(last) {
				last = day.At
			}
		}
		id := r.removedID(r.Resource, r.SourceType, r.Month)
		return store.Row{Key: r.key(id), Index: [2]string{store.Time(last) + id}}
	},
	Encode: func(r *removedRow) ([]byte, error) { return store.JSON(&r.removedDoc) },
	Decode: func(row store.Row, r *removedRow) error {
		r.owner = owner{row.Team, row.User}
		return json.Unmarshal(row.Doc, &r.removedDoc)
	},
}

// removedKey identifies a removedRow of a user.
type removedKey struct {
	resource string
	source   SourceType
	month    string
}

// removedDays collects the days from which a write removes data, each with the bits of [RemovedDay].Hours.
type removedDays map[removedKey]map[healthlab.Date]uint32

func (d removedDays) add(resource string, source SourceType, day healthlab.Date, hours uint32) {
	key := removedKey{resource, source, day.String()[:len("2006-01")]}
	if d[key] == nil {
		d[key] = map[healthlab.Date]uint32{}
	}
	d[key][day] |= hours
}

// addSamples adds the local days and hours of removed samples. before has the samples as they were stored, by time.
func (d removedDays) addSamples(key *SeriesKey, gone []series.Gone, before map[int64]series.Sample) {
	for _, g := range gone {
		s := before[g.Time]
		shift := time.Duration(s.Offset) * time.Second
		at := time.UnixMicro(g.Time).UTC().Add(shift)
		end := at
		if s.End != series.NoEnd && s.End > g.Time { // its end is exclusive
			end = time.UnixMicro(min(s.End-1, g.Time+longestInterval.Microseconds())).UTC().Add(shift)
		}
		for hour := at.Truncate(time.Hour); !hour.After(end); hour = hour.Add(time.Hour) {
			d.add(key.Resource, key.SourceType, healthlab.DateOf(hour), 1<<hour.Hour())
		}
	}
}

// addRecord adds the days of a removed record. If next replaces the record, it adds only the days that next does not
// have.
func (d removedDays) addRecord(old, next *Record) {
	for _, day := range recordDays(old) {
		if next == nil || !slices.Contains(recordDays(next), day) {
			d.add(old.Resource, old.SourceType, day, 0)
		}
	}
}

// recordDays returns the local day of a record's index time and, if it differs, the calendar date of the summary.
func recordDays(r *Record) []healthlab.Date {
	days := []healthlab.Date{healthlab.DateOf(r.Index.UTC().Add(time.Duration(r.Offset) * time.Second))}
	if item, err := r.Decode(); err == nil { // a document that cannot be decoded has no calendar date
		if day := item.day(); !day.IsZero() && day != days[0] {
			days = append(days, day)
		}
	}
	return days
}

// put stores the days in the transaction that removes the data.
func (d removedDays) put(tx store.Tx, o owner) error {
	for key, days := range d {
		e, err := removedTable.Get(tx, o.key(o.removedID(key.resource, key.source, key.month)), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			e = &store.Entry[removedRow]{Value: removedRow{o, removedDoc{key.resource, key.source, key.month, map[string]removedTime{}}}}
		}
		for day, hours := range days {
			e.Value.Days[day.String()] = removedTime{tx.Now().UTC(), e.Value.Days[day.String()].Hours | hours}
		}
		if err := removedTable.Put(tx, e); err != nil {
			return err
		}
	}
	return nil
}

// RemovedDays implements [Data].
func (d *dataRows) RemovedDays(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, since time.Time) ([]RemovedDay, error) {
	prefix := store.UUID(user.UUID)
	q := store.Query{Key: store.Key{Team: team, User: user}, By: store.ByID, From: prefix, To: store.End(prefix)}
	list, err := removedTable.Look(ctx, d.s, q)
	if err != nil {
		return nil, err
	}
	var out []RemovedDay
	for _, e := range list {
		for _, text := range slices.Sorted(maps.Keys(e.Value.Days)) {
			day, err := healthlab.ParseDate(text)
			if err != nil {
				return nil, err
			}
			if v := e.Value.Days[text]; !v.At.Before(since) {
				out = append(out, RemovedDay{e.Value.Resource, e.Value.SourceType, day, v.Hours})
			}
		}
	}
	return out, nil
}

// RemovedUsers implements [Data].
func (d *dataRows) RemovedUsers(ctx context.Context, team healthlab.TeamID, since time.Time) ([]healthlab.UserID, error) {
	const atOnce = 1000
	seen := map[healthlab.UserID]bool{}
	var out []healthlab.UserID
	q := store.Query{Key: removedTable.Key(store.Key{Team: team}), By: store.ByFirst, From: store.Time(since), Limit: atOnce, Bare: true}
	for {
		got, err := d.s.Read(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, row := range got[0] {
			if !seen[row.User] {
				seen[row.User] = true
				out = append(out, row.User)
			}
		}
		if len(got[0]) < atOnce {
			return out, nil
		}
		q = q.After(got[0][atOnce-1].Index[0], atOnce)
	}
}
