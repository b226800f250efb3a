package healthdata

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// PutRecords implements [Data].
func (d *dataRows) PutRecords(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []Record,
	events func([]PutResult) ([]healthlab.Event, error),
) error {
	if err := CheckRecords(records); err != nil {
		return err
	}
	return d.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		w := recordWrite{at: owner{team, user}, results: make([]PutResult, 0, len(records)), spans: changedSpans{}, removed: removedDays{}, sessions: sessions{}}
		if len(records) > 0 {
			w.resource = records[0].Resource
		}
		part := records[:min(len(records), recordsAtOnce)]
		first := w.at.recordQueries(w.resource, idsOf(part))
		if len(part) == len(records) { // read the sessions that overlap the new ones in the same round trip
			times := sessions{}
			for i := range part {
				if part[i].isSession() {
					times.add(&part[i])
				}
			}
			for _, t := range times {
				first = append(first, w.at.sessionQuery(w.resource, t))
			}
		}
		if err := d.readUser(tx, team, user, first); err != nil || len(records) == 0 {
			return err
		}
		for part := range slices.Chunk(records, recordsAtOnce) {
			if err := w.put(tx, part); err != nil {
				return err
			}
		}
		if err := w.removed.put(tx, w.at); err != nil {
			return err
		}
		marked, err := w.at.coverSessions(tx, w.resource, w.sessions, w.spans)
		if err != nil {
			return err
		}
		results := withMarks(w.results, records, marked)
		if len(w.spans) > 0 {
			if err := recordVersions.Put(tx, w.version); err != nil {
				return err
			}
		}
		var out []healthlab.Event
		if events != nil {
			if out, err = events(slices.Clone(results)); err != nil {
				return err
			}
		}
		return d.finish(ctx, tx, team, user, out, w.spans)
	})
}

// recordsAtOnce is how many records are read and written at a time, so that a large write needs little memory.
const recordsAtOnce = 1000

func idsOf(records []Record) []uuid.UUID {
	ids := make([]uuid.UUID, len(records))
	for i := range records {
		ids[i] = records[i].ID
	}
	return ids
}

// recordWrite is a running write of records.
type recordWrite struct {
	at       owner
	resource string
	version  *store.Entry[recordVersion]
	results  []PutResult
	spans    changedSpans
	removed  removedDays // the days that changed records no longer have
	sessions sessions    // the changed sessions
}

// put writes records and appends their results.
func (w *recordWrite) put(tx store.Tx, records []Record) error {
	stored, err := w.at.storedRecords(tx, w.resource, idsOf(records))
	if err != nil {
		return err
	}
	w.version = stored.version
	for i := range records {
		r, was := normalRecord(&records[i]), stored.records[i]
		if want := records[i].Replaces; want != nil && !bytes.Equal(want, was.Value.Doc) {
			return fmt.Errorf("%w: a record of %s has changed since it was read", healthlab.Precondition, w.resource)
		}
		result := PutResult{Outcome: PutNew, CreatedAt: r.CreatedAt}
		if was.Revision > 0 {
			old := &was.Value.Record
			covered := old.CoveredBy != uuid.Nil
			result = PutResult{Outcome: PutChanged, CreatedAt: old.CreatedAt, Covered: covered, WasCovered: covered}
			if sameRecord(old, &r) {
				result.Outcome = PutSame
				w.results = append(w.results, result)
				continue
			}
			r.CreatedAt, r.CoveredBy = old.CreatedAt, old.CoveredBy
			if old.isSession() {
				w.sessions.add(old)
			}
			w.spans.add(w.resource, old.Index.UnixMicro(), old.Index.UnixMicro())
			if !old.Index.Equal(r.Index) || old.Offset != r.Offset {
				w.removed.addRecord(old, &r)
			}
		}
		w.results = append(w.results, result)
		if r.isSession() {
			w.sessions.add(&r)
		} else {
			r.CoveredBy = uuid.Nil
		}
		w.spans.add(w.resource, r.Index.UnixMicro(), r.Index.UnixMicro())
		if err := stored.put(tx, i, &r); err != nil {
			return err
		}
	}
	return nil
}

// withMarks sets Covered in the results of written records, and appends results for the other records in marked, which
// became covered or are no longer covered.
func withMarks(results []PutResult, records []Record, marked []*Record) []PutResult {
	if len(marked) == 0 {
		return results
	}
	at := make(map[uuid.UUID]int, len(records))
	for i := range records {
		at[records[i].ID] = i
	}
	for _, m := range marked {
		covered := m.CoveredBy != uuid.Nil
		if i, ok := at[m.ID]; ok {
			results[i].Covered = covered
			continue
		}
		results = append(results, PutResult{CreatedAt: m.CreatedAt, Covered: covered, WasCovered: !covered, Record: m})
	}
	return results
}

// storedRecords has some stored records of a resource in a transaction.
type storedRecords struct {
	owner
	version *store.Entry[recordVersion]
	// records are in the order of the ids, with Raw. A missing record has Revision 0.
	records []*store.Entry[recordRow]
	raws    []int64 // revisions of the rows with Raw, 0 for none
}

// recordQueries returns the queries that storedRecords needs.
func (o owner) recordQueries(resource string, ids []uuid.UUID) []store.Query {
	if len(ids) == 0 {
		return nil
	}
	q := []store.Query{recordVersions.One(o.key(resourceID(o.user, resource)), store.Held)}
	for _, id := range ids {
		key := o.key(recordID(o.user, resource, id))
		q = append(q, recordTable.One(key, store.Held), rawTable.One(key, store.Held))
	}
	return q
}

// storedRecords reads records by their ids. ids must not be empty.
func (o owner) storedRecords(tx store.Tx, resource string, ids []uuid.UUID) (*storedRecords, error) {
	got, err := tx.Read(o.recordQueries(resource, ids)...)
	if err != nil {
		return nil, err
	}
	version, err := recordVersions.DecodedOne(got[0])
	if err != nil {
		return nil, err
	}
	if version == nil {
		version = &store.Entry[recordVersion]{}
	}
	version.Value = recordVersion{o, resource}
	s := &storedRecords{owner: o, version: version}
	for i := 1; i < len(got); i += 2 {
		r, err := recordTable.DecodedOne(got[i])
		if err != nil {
			return nil, err
		}
		if r == nil {
			r = &store.Entry[recordRow]{}
		}
		var raw int64
		if rows := got[i+1]; len(rows) > 0 {
			r.Value.Raw, raw = append([]byte{}, rows[0].Doc...), rows[0].Revision
		}
		s.records, s.raws = append(s.records, r), append(s.raws, raw)
	}
	return s, nil
}

// put writes r, with its Raw payload, in place of record i.
func (s *storedRecords) put(tx store.Tx, i int, r *Record) error {
	e := s.records[i]
	e.Value = recordRow{s.owner, *r}
	if r.Raw != nil {
		if err := rawTable.Put(tx, &store.Entry[recordRow]{Value: e.Value, Revision: s.raws[i]}); err != nil {
			return err
		}
	} else if s.raws[i] > 0 {
		tx.Delete(rawTable.Key(rawTable.Row(&e.Value).Key))
	}
	return recordTable.Put(tx, e)
}

// removeRecords removes records and returns the ids of those that existed. It adds the changed periods to spans and the
// removed days to days. It sets Hidden and Marked of out.
func (o owner) removeRecords(tx store.Tx, resource string, ids []uuid.UUID, spans changedSpans, days removedDays, out *Removed) (gone []uuid.UUID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	s, err := o.storedRecords(tx, resource, ids)
	if err != nil {
		return nil, err
	}
	times := sessions{}
	for i, e := range s.records {
		if e.Revision == 0 || slices.Contains(ids[:i], ids[i]) {
			continue
		}
		gone = append(gone, ids[i])
		at := e.Value.Index.UnixMicro()
		spans.add(resource, at, at)
		days.addRecord(&e.Value.Record, nil)
		if r := &e.Value.Record; r.isSession() {
			times.add(r)
			if r.CoveredBy != uuid.Nil {
				out.Hidden = append(out.Hidden, r.ID)
			}
		}
		recordTable.Delete(tx, e)
		if s.raws[i] > 0 {
			rawTable.Delete(tx, e)
		}
	}
	marked, err := o.coverSessions(tx, resource, times, spans)
	if err != nil {
		return nil, err
	}
	out.Marked = append(out.Marked, marked...)
	if len(gone) > 0 {
		err = recordVersions.Put(tx, s.version)
	}
	return gone, err
}

// normalRecord returns a copy of a record as it is stored: times in UTC to the microsecond, without Replaces and
// CoveredBy.
func normalRecord(r *Record) Record {
	k := *r
	k.Doc, k.Raw, k.Replaces, k.CoveredBy = bytes.Clone(r.Doc), bytes.Clone(r.Raw), nil, uuid.Nil
	for _, t := range []*time.Time{&k.Index, &k.CreatedAt, &k.UpdatedAt} {
		*t = healthlab.At(*t).Time
	}
	return k
}

func sameRecord(a, b *Record) bool {
	return bytes.Equal(a.Doc, b.Doc) && bytes.Equal(a.Raw, b.Raw) && a.Index.Equal(b.Index) && a.Offset == b.Offset && a.Origin == b.Origin
}

func noRecord() error { return fmt.Errorf("%w: the team has no such record", healthlab.NotFound) }

// Find implements [Data].
func (d *dataRows) Find(ctx context.Context, team healthlab.TeamID, resource string, id uuid.UUID) (healthlab.UserID, Record, error) {
	none := func(err error) (healthlab.UserID, Record, error) { return healthlab.UserID{}, Record{}, err }
	if healthlab.CheckText(resource) != nil {
		return none(noRecord())
	}
	found := store.Query{Key: store.Key{Team: team}, By: store.BySecond}.Equal(idIndex(resource, id))
	list, err := recordTable.Look(ctx, d.s, found)
	if err != nil {
		return none(err)
	}
	for _, e := range list {
		at := e.Value.owner
		key := at.key(recordID(at.user, resource, id))
		got, err := d.s.Read(ctx, store.User(team, at.user), recordTable.One(key, store.Plain), rawTable.One(key, store.Plain))
		if err != nil {
			return none(err)
		}
		r, err := recordTable.DecodedOne(got[1])
		if err != nil {
			return none(err)
		}
		if r == nil || d.admitted(store.StateOf(got[0])) != nil {
			continue
		}
		if len(got[2]) > 0 {
			r.Value.Raw = append([]byte{}, got[2][0].Doc...)
		}
		return at.user, r.Value.Record, nil
	}
	return none(noRecord())
}
