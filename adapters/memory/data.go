package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
	"github.com/healthlab-dev/healthlab/personkey"
)

// dataTable keeps what was measured, by user. What a snapshot has is never
// changed: a write makes new maps and slices of what it touches.
type dataTable struct {
	keys    *personkey.Keys
	samples seriesbox.Cipher

	users  map[healthdata.UserRef]*userData
	owners map[recordKey]healthlab.UserID
}

type recordKey struct {
	team     healthlab.TeamID
	resource string
	id       uuid.UUID
}

// userData is the data of one user by resource.
type userData struct {
	records map[string]map[uuid.UUID]healthdata.Record
	series  map[string]map[healthdata.SeriesKey][]chunk
}

// chunk is a chunk of a series as it is kept. It is never changed.
type chunk struct {
	start, stop  int64
	header, data []byte // of [seriesbox.Series.Seal]
}

// overlaps reports whether a sample of the chunk can lie from (inclusive) to (exclusive).
func (c *chunk) overlaps(from, to int64) bool { return c.start < to && c.stop >= from }

func newDataTable(keys *personkey.Keys, samples seriesbox.Cipher) *dataTable {
	return &dataTable{keys: keys, samples: samples, users: map[healthdata.UserRef]*userData{}, owners: map[recordKey]healthlab.UserID{}}
}

// of returns a user's data, empty if there is none.
func (d *dataTable) of(k healthdata.UserRef) *userData {
	if m := d.users[k]; m != nil {
		return m
	}
	return &userData{
		records: map[string]map[uuid.UUID]healthdata.Record{},
		series:  map[string]map[healthdata.SeriesKey][]chunk{},
	}
}

// clone returns a copy whose two outer maps can be written to.
func (m *userData) clone() *userData {
	return &userData{records: maps.Clone(m.records), series: maps.Clone(m.series)}
}

// erase forgets a user's data.
func (d *dataTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	k := healthdata.UserRef{Team: team, User: user}
	for resource, records := range d.of(k).records {
		for id := range records {
			delete(d.owners, recordKey{k.Team, resource, id})
		}
	}
	delete(d.users, k)
}

type dataStore struct {
	*database
	users      *userTable
	outbox     *outbox
	continuous *continuousTable
	data       *dataTable
}

// open takes the lock and finds the data of a live user.
func (d dataStore) open(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (*userData, error) {
	if err := d.lock(ctx); err != nil {
		return nil, err
	}
	if !d.users.isLive(team, user) {
		d.mu.Unlock()
		return nil, healthlab.NotFound
	}
	return d.data.of(healthdata.UserRef{Team: team, User: user}), nil
}

func (d dataStore) PutRecords(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record,
	events func([]healthdata.PutResult) ([]healthlab.Event, error),
) error {
	if err := healthdata.CheckRecords(records); err != nil {
		return err
	}
	before, err := d.open(ctx, team, user)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	if len(records) == 0 {
		return nil
	}
	resource := records[0].Resource
	old := before.records[resource]
	put := maps.Clone(old)
	if put == nil {
		put = map[uuid.UUID]healthdata.Record{}
	}
	results := make([]healthdata.PutResult, len(records))
	ref := personkey.Ref{Team: team, User: user}
	var news changedSpans
	for i := range records {
		r := normalRecord(&records[i])
		was, ok := old[r.ID]
		if was, err = d.data.openRecord(ctx, ref, &was); err != nil {
			return err
		}
		if want := records[i].Replaces; want != nil && !bytes.Equal(want, was.Doc) {
			return fmt.Errorf("%w: the record has changed", healthlab.Precondition)
		}
		results[i] = healthdata.PutResult{Outcome: healthdata.PutNew, CreatedAt: r.CreatedAt}
		if ok {
			results[i] = healthdata.PutResult{Outcome: healthdata.PutChanged, CreatedAt: was.CreatedAt}
			if sameRecord(&was, &r) {
				results[i].Outcome = healthdata.PutSame
				continue
			}
			r.CreatedAt = was.CreatedAt
			news.add(resource, was.Index.UnixMicro(), was.Index.UnixMicro())
		}
		if put[r.ID], err = d.data.sealRecord(ctx, ref, &r); err != nil {
			return err
		}
		news.add(resource, r.Index.UnixMicro(), r.Index.UnixMicro())
	}
	if err := d.emitResults(ctx, events, results); err != nil {
		return err
	}
	after := before.clone()
	after.records[resource] = put
	d.data.users[healthdata.UserRef{Team: team, User: user}] = after
	for i := range records {
		d.data.owners[recordKey{team, resource, records[i].ID}] = user
	}
	d.continuous.scheduleChanged(healthdata.UserRef{Team: team, User: user}, news, d.clock())
	return nil
}

// emitResults asks for the events of a write and emits them. An error means that nothing was
// written.
func (d dataStore) emitResults(ctx context.Context, events func([]healthdata.PutResult) ([]healthlab.Event, error), results []healthdata.PutResult) error {
	if events == nil {
		return nil
	}
	out, err := events(slices.Clone(results))
	if err != nil {
		return err
	}
	return d.outbox.emit(ctx, out)
}

// normalRecord returns a record as it is kept.
func normalRecord(r *healthdata.Record) healthdata.Record {
	k := *r
	k.Doc, k.Raw, k.Replaces = bytes.Clone(r.Doc), bytes.Clone(r.Raw), nil
	k.Index, k.CreatedAt, k.UpdatedAt = instant(r.Index), instant(r.CreatedAt), instant(r.UpdatedAt)
	return k
}

// sealRecord encrypts the documents of a record.
func (d *dataTable) sealRecord(ctx context.Context, ref personkey.Ref, r *healthdata.Record) (k healthdata.Record, err error) {
	k = *r
	if k.Doc, err = d.keys.Seal(ctx, ref, personkey.RowRecordDoc(r.Resource, r.ID), r.Doc); err == nil && r.Raw != nil {
		k.Raw, err = d.keys.Seal(ctx, ref, personkey.RowRecordRaw(r.Resource, r.ID), r.Raw)
	}
	return k, err
}

// openRecord returns a copy of a record as it was before sealRecord.
func (d *dataTable) openRecord(ctx context.Context, ref personkey.Ref, k *healthdata.Record) (r healthdata.Record, err error) {
	r = normalRecord(k)
	if r.Doc, err = d.keys.Open(ctx, ref, personkey.RowRecordDoc(k.Resource, k.ID), r.Doc); err == nil {
		r.Raw, err = d.keys.Open(ctx, ref, personkey.RowRecordRaw(k.Resource, k.ID), r.Raw)
	}
	return r, err
}

// sameRecord reports whether two versions of a record say the same.
func sameRecord(a, b *healthdata.Record) bool {
	return bytes.Equal(a.Doc, b.Doc) && bytes.Equal(a.Raw, b.Raw) && a.Index.Equal(b.Index) && a.Offset == b.Offset
}

func (d dataStore) MergeSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch,
	events func([]series.Outcome) ([]healthlab.Event, error),
) error {
	if err := healthdata.CheckBatches(batches); err != nil {
		return err
	}
	before, err := d.open(ctx, team, user)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	after := before.clone()
	outcomes := make([]series.Outcome, len(batches))
	for i := range batches {
		b := &batches[i]
		if outcomes[i], err = after.merge(ctx, d.data.seriesOf(team, user, &b.Key), b); err != nil {
			return fmt.Errorf("batch %d: %w", i, err)
		}
	}
	if events != nil {
		out, err := events(outcomes)
		if err != nil {
			return err
		}
		if err := d.outbox.emit(ctx, out); err != nil {
			return err
		}
	}
	d.data.users[healthdata.UserRef{Team: team, User: user}] = after
	var news changedSpans
	for i := range batches {
		news.addBatch(&batches[i], &outcomes[i])
	}
	d.continuous.scheduleChanged(healthdata.UserRef{Team: team, User: user}, news, d.clock())
	return nil
}

func (d dataStore) Remove(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
	if err := healthdata.CheckRemoval(&r); err != nil {
		return 0, err
	}
	before, err := d.open(ctx, team, user)
	if err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	after := before.clone()
	var news changedSpans
	records := func(resource string, ids []uuid.UUID) (n int) {
		if len(ids) == 0 {
			return 0
		}
		kept := maps.Clone(after.records[resource])
		for _, id := range ids {
			if was, ok := kept[id]; ok {
				delete(kept, id)
				news.add(resource, was.Index.UnixMicro(), was.Index.UnixMicro())
				n++
			}
		}
		after.records[resource] = kept
		return n
	}
	n := records(r.Resource, r.IDs)
	records(r.Parts, r.PartIDs)
	for i := range r.Samples {
		of := &r.Samples[i]
		removed, err := after.remove(ctx, d.data.seriesOf(team, user, &of.Key), of)
		if err != nil {
			return 0, fmt.Errorf("series %d: %w", i, err)
		}
		if n += removed; removed > 0 {
			news.add(of.Key.Resource, of.Times[0], of.Times[len(of.Times)-1])
		}
	}
	d.data.users[healthdata.UserRef{Team: team, User: user}] = after
	for _, id := range r.IDs {
		delete(d.data.owners, recordKey{team, r.Resource, id})
	}
	for _, id := range r.PartIDs {
		delete(d.data.owners, recordKey{team, r.Parts, id})
	}
	d.continuous.scheduleChanged(healthdata.UserRef{Team: team, User: user}, news, d.clock())
	return n, nil
}

// seriesOf returns what encrypts a series of a user.
func (d *dataTable) seriesOf(team healthlab.TeamID, user healthlab.UserID, key *healthdata.SeriesKey) seriesbox.Series {
	return d.samples.Series(personkey.Ref{Team: team, User: user}, key)
}

// overlapping returns the chunks of a series that overlap one of some ranges.
func (m *userData) overlapping(ctx context.Context, box seriesbox.Series, key healthdata.SeriesKey, ranges []series.Range) ([]series.Chunk, error) {
	out := make([]series.Chunk, 0, len(ranges))
	for _, c := range m.series[key.Resource][key] {
		if slices.ContainsFunc(ranges, func(r series.Range) bool { return c.overlaps(r.From, r.To) }) {
			opened, err := box.Open(ctx, c.start, c.header, c.data)
			if err != nil {
				return nil, err
			}
			out = append(out, opened)
		}
	}
	return out, nil
}

// remove removes samples from a copy of their series.
func (m *userData) remove(ctx context.Context, box seriesbox.Series, r *healthdata.SampleRemoval) (int, error) {
	_, ranges := series.Reach(r.Span, r.Span.Points(r.Times), nil)
	taking, err := m.overlapping(ctx, box, r.Key, ranges)
	if err != nil {
		return 0, err
	}
	change, n, err := series.Remove(taking, nil, r.Times, r.Of, r.Span)
	if err == nil && n > 0 {
		err = m.change(ctx, box, r.Key, &change)
	}
	return n, err
}

// merge writes one batch into a copy of its series.
func (m *userData) merge(ctx context.Context, box seriesbox.Series, b *healthdata.SampleBatch) (series.Outcome, error) {
	_, ranges := series.Reach(b.Span, b.Span.Cells(b.Samples), nil)
	taking, err := m.overlapping(ctx, box, b.Key, ranges)
	if err != nil {
		return series.Outcome{}, err
	}
	change, err := series.Apply(taking, nil, b.Samples, b.Span)
	if err == nil && !change.Empty() {
		err = m.change(ctx, box, b.Key, &change)
	}
	return change.Outcome, err
}

// change writes a change of a series.
func (m *userData) change(ctx context.Context, box seriesbox.Series, key healthdata.SeriesKey, change *series.Change) error {
	chunks := m.series[key.Resource][key]
	gone := make(map[int64]bool, len(change.Drop)+len(change.Put))
	for _, start := range change.Drop {
		gone[start] = true
	}
	kept := make([]chunk, 0, len(chunks)+len(change.Put))
	for i := range change.Put {
		c := &change.Put[i]
		gone[c.Start] = true
		header, data, err := box.Seal(ctx, c)
		if err != nil {
			return err
		}
		kept = append(kept, chunk{c.Start, c.Stop, header, data})
	}
	for _, c := range chunks {
		if !gone[c.start] {
			kept = append(kept, c)
		}
	}
	slices.SortFunc(kept, func(a, b chunk) int { return cmp.Compare(a.start, b.start) })
	byKey := maps.Clone(m.series[key.Resource])
	if byKey == nil {
		byKey = map[healthdata.SeriesKey][]chunk{}
	}
	byKey[key] = kept
	m.series[key.Resource] = byKey
	return nil
}

func (d dataStore) View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
	m, err := d.open(ctx, team, user)
	if err != nil {
		return err
	}
	snap := snapshot{d.data, personkey.Ref{Team: team, User: user}, m.clone()}
	d.mu.Unlock()
	return read(snap)
}

func (d dataStore) Find(ctx context.Context, team healthlab.TeamID, resource string, id uuid.UUID) (healthlab.UserID, healthdata.Record, error) {
	if err := d.lock(ctx); err != nil {
		return healthlab.UserID{}, healthdata.Record{}, err
	}
	defer d.mu.Unlock()
	user, ok := d.data.owners[recordKey{team, resource, id}]
	if !ok || !d.users.isLive(team, user) {
		return healthlab.UserID{}, healthdata.Record{}, healthlab.NotFound
	}
	kept := d.data.of(healthdata.UserRef{Team: team, User: user}).records[resource][id]
	r, err := d.data.openRecord(ctx, personkey.Ref{Team: team, User: user}, &kept)
	return user, r, err
}

// snapshot is the data of one user as it was when View was called.
type snapshot struct {
	data *dataTable
	ref  personkey.Ref
	m    *userData
}

func (v snapshot) Records(ctx context.Context, q healthdata.RecordQuery) ([]healthdata.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := []healthdata.Record{}
	for _, r := range v.m.records[q.Resource] {
		if (q.Provider != "" && r.Provider != q.Provider) || (q.ID != uuid.Nil && r.ID != q.ID) ||
			(!q.From.IsZero() && r.Index.Before(q.From)) || (!q.To.IsZero() && r.Index.After(q.To)) ||
			(q.Raw && r.Raw == nil) {
			continue
		}
		if !q.Raw {
			r.Raw = nil
		}
		opened, err := v.data.openRecord(ctx, v.ref, &r)
		if err != nil {
			return nil, err
		}
		out = append(out, opened)
	}
	slices.SortFunc(out, func(a, b healthdata.Record) int {
		return cmp.Or(a.Index.Compare(b.Index), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return out, nil
}

func (v snapshot) Series(ctx context.Context, q healthdata.SeriesQuery) ([]healthdata.Series, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := []healthdata.Series{}
	for _, resource := range q.Resources {
		for key, chunks := range v.m.series[resource] {
			if (q.Provider != "" && key.Provider != q.Provider) || (q.Key != nil && key != *q.Key) {
				continue
			}
			s, box := healthdata.Series{Key: key}, v.data.samples.Series(v.ref, &key)
			for _, c := range chunks {
				if (q.From != 0 || q.To != 0) && !c.overlaps(q.From, q.To) {
					continue
				}
				h, err := box.OpenHeader(ctx, c.start, c.header)
				if err != nil {
					return nil, err
				}
				s.Chunks = append(s.Chunks, series.Chunk{Header: h})
			}
			if len(s.Chunks) > 0 {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b healthdata.Series) int { return a.Key.Compare(b.Key) })
	return out, nil
}

func (v snapshot) Load(ctx context.Context, key healthdata.SeriesKey, starts []int64) ([]series.Chunk, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	chunks, box := v.m.series[key.Resource][key], v.data.samples.Series(v.ref, &key)
	out := make([]series.Chunk, len(starts))
	for i, start := range starts {
		at, ok := slices.BinarySearchFunc(chunks, start, func(c chunk, t int64) int { return cmp.Compare(c.start, t) })
		if !ok {
			return nil, fmt.Errorf("%w: no such chunk", healthlab.NotFound)
		}
		var err error
		if out[i], err = box.Open(ctx, start, chunks[at].header, chunks[at].data); err != nil {
			return nil, err
		}
	}
	return out, nil
}
