package healthdata

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/store"
)

// viewTries is how often a view is read without locks. After that the view locks out writers of the user.
const viewTries = 4

// errMoved ends a read whose answers are from different instants.
var errMoved = errors.New("the data changed while it was read")

// View implements [Data].
//
// Each query of a view reads a snapshot of its own. With a query, the view also reads the version rows of its earlier
// queries. If one of them changed, the earlier results are outdated and read is called again.
func (d *dataRows) View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(View) error) error {
	for try := range viewTries {
		if try > 0 {
			ctx = store.Fresh(ctx)
		}
		v := &rowView{owner: owner{team, user}, data: d, fetch: d.s.Read}
		if moved, err := v.run(ctx, read); !moved {
			return err
		}
	}
	return d.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.Read(store.User(team, user).Hold()); err != nil {
			return err
		}
		v := &rowView{owner: owner{team, user}, data: d, fetch: func(_ context.Context, q ...store.Query) ([][]store.Row, error) {
			for i := range q {
				q[i].Lock = store.Plain
			}
			return tx.Read(q...)
		}}
		moved, err := v.run(ctx, read)
		if moved {
			return fmt.Errorf("%w: %w", healthlab.Unavailable, errMoved)
		}
		return err
	})
}

// rowView is a View over rows.
type rowView struct {
	owner
	data  *dataRows
	fetch func(context.Context, ...store.Query) ([][]store.Row, error)

	known   bool  // the user exists
	refused error // the error if the user cannot be read
	moved   bool  // an answer is from another instant than an earlier one
	witness []witness
	// loaded has the chunks that Series returned. Open chunks have their data.
	loaded map[SeriesKey]map[int64]closedChunk
}

// witness is a query whose answer changes whenever an earlier answer about a resource changes.
type witness struct {
	q    store.Query
	rows []store.Row // without documents
}

// run calls read. moved reports whether read must be called again.
func (v *rowView) run(ctx context.Context, read func(View) error) (moved bool, err error) {
	v.loaded = map[SeriesKey]map[int64]closedChunk{}
	err = read(v)
	if !v.known && v.refused == nil && !v.moved && err == nil { // read made no query
		_, err = v.readRows(ctx)
	}
	if v.refused != nil {
		return false, v.refused
	}
	return v.moved, err
}

// readRows answers queries. It returns errMoved if the answers would be from a later instant than earlier answers.
func (v *rowView) readRows(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if v.moved {
		return nil, errMoved
	}
	all := slices.Clone(q)
	for i := range v.witness {
		all = append(all, v.witness[i].q)
	}
	if !v.known {
		all = append(all, store.User(v.team, v.user))
	}
	if len(v.witness) > 0 {
		ctx = store.Fresh(ctx)
	}
	got, err := v.fetch(ctx, all...)
	if err != nil {
		return nil, err
	}
	if !v.known {
		if v.refused = v.data.admitted(store.StateOf(got[len(got)-1])); v.refused != nil {
			return nil, v.refused
		}
		v.known = true
	}
	for i := range v.witness {
		if !slices.EqualFunc(v.witness[i].rows, got[len(q)+i], sameRevision) {
			v.moved = true
			return nil, errMoved
		}
	}
	return got[:len(q)], nil
}

func sameRevision(a, b store.Row) bool { return a.ID == b.ID && a.Revision == b.Revision }

// addWitness keeps a query and its answer as a witness, so that later queries notice a change of the answer.
func (v *rowView) addWitness(q store.Query, rows []store.Row) {
	q.Bare = true
	if slices.ContainsFunc(v.witness, func(w witness) bool { return w.q == q }) {
		return
	}
	w := witness{q, slices.Clone(rows)}
	for i := range w.rows {
		w.rows[i].Doc = nil
	}
	v.witness = append(v.witness, w)
}

func (o owner) byID(table, from, to string) store.Query {
	return store.Query{Key: store.Key{Table: table, Team: o.team, User: o.user}, By: store.ByID, From: from, To: to}
}

// Records implements [View].
func (v *rowView) Records(ctx context.Context, q RecordQuery) ([]Record, error) {
	find := v.viewedRecords(&q)
	got, err := v.readRows(ctx, find...)
	if err != nil {
		return nil, err
	}
	v.addWitness(find[0], got[0])
	list, err := recordTable.Decoded(got[1])
	if err != nil {
		return nil, err
	}
	raws := map[uuid.UUID][]byte{}
	if q.Raw {
		for _, r := range got[2] {
			raws[store.ParseUUID(r.ID[len(r.ID)-16:])] = append([]byte{}, r.Doc...)
		}
	}
	out := []Record{}
	for _, e := range list {
		r := e.Value.Record
		if q.Provider != "" && r.Provider != q.Provider || q.Raw && r.Raw == nil ||
			!q.From.IsZero() && r.Index.Before(q.From) || !q.To.IsZero() && r.Index.After(q.To) {
			continue
		}
		r.Raw = raws[r.ID]
		out = append(out, r)
	}
	return out, nil
}

// viewedRecords returns the queries of [View].Records: the version of the records, the records, and the
// payloads.
func (o owner) viewedRecords(q *RecordQuery) []store.Query {
	version := recordVersions.One(o.key(resourceID(o.user, q.Resource)), store.Plain)
	version.Bare = true
	find := []store.Query{version}
	for _, table := range []string{recordTable.Name, rawTable.Name} {
		one := store.Query{Key: o.key(recordID(o.user, q.Resource, q.ID))}
		if q.ID == uuid.Nil {
			one = o.recordRange(q)
		}
		one.Table = table
		find = append(find, one)
	}
	if !q.Raw {
		find = find[:2]
	}
	return find
}

// recordRange returns the query for the records in the range of q.
func (o owner) recordRange(q *RecordQuery) store.Query {
	prefix := resourceID(o.user, q.Resource)
	find := store.Query{Key: o.key(""), By: store.ByFirst, From: prefix, To: store.End(prefix)}
	if !q.From.IsZero() {
		find.From = prefix + store.Time(q.From)
	}
	if !q.To.IsZero() {
		find.To = prefix + store.Int(q.To.UnixMicro()+1)
	}
	return find
}

// Queries returns the queries that read a user and answer [View].Records for q, to announce them to [store.Ahead]. Only
// the view of a Data from [NewData] makes these queries.
func (q RecordQuery) Queries(team healthlab.TeamID, user healthlab.UserID) []store.Query {
	return append(owner{team, user}.viewedRecords(&q), store.User(team, user))
}

// Queries returns the queries that read a user and answer [View].Series for q, without the headers of closed chunks, to
// announce them to [store.Ahead]. Only the view of a Data from [NewData] makes these queries.
func (q SeriesQuery) Queries(team healthlab.TeamID, user healthlab.UserID) []store.Query {
	return append(owner{team, user}.viewedHeads(&q), store.User(team, user))
}

// Series implements [View].
func (v *rowView) Series(ctx context.Context, q SeriesQuery) ([]Series, error) {
	heads := v.viewedHeads(&q)
	got, err := v.readRows(ctx, heads...)
	if err != nil {
		return nil, err
	}
	var all []*store.Entry[seriesHead]
	for i := range heads {
		v.addWitness(heads[i], got[i])
		list, err := headTable.Decoded(got[i])
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	out, err := v.headers(ctx, &q, all)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Series) int { return a.Key.Compare(b.Key) })
	return out, nil
}

// viewedHeads returns the first queries of [View].Series.
func (o owner) viewedHeads(q *SeriesQuery) []store.Query {
	var heads []store.Query
	for _, resource := range q.Resources {
		if q.Key != nil && q.Key.Resource != resource {
			continue
		}
		prefix := resourceID(o.user, resource)
		if q.Provider != "" {
			prefix += store.Text(q.Provider)
		}
		if q.Key != nil {
			prefix = q.Key.id(o.user)
		}
		if one := o.byID(headTable.Name, prefix, store.End(prefix)); !slices.Contains(heads, one) {
			heads = append(heads, one)
		}
	}
	return heads
}

// closedRows reads the rows of the closed chunks of each series of heads in the range of q, with their samples if
// q.Whole.
func (v *rowView) closedRows(ctx context.Context, q *SeriesQuery, heads []*store.Entry[seriesHead]) ([][]store.Row, error) {
	ranged := q.From != 0 || q.To != 0
	table := headerTable.Name
	if q.Whole {
		table = chunkTable.Name
	}
	var find []store.Query
	var whose []int // for each query, the index of its series in heads
	for i, h := range heads {
		id, end := h.Value.id, store.End(h.Value.id)
		switch {
		case q.KeysOnly, h.Value.closed < series.MinTime, ranged && h.Value.closed < q.From:
			continue // no closed chunk is in the range
		case !ranged:
			find, whose = append(find, v.byID(table, id, end)), append(whose, i)
			continue
		}
		before := v.byID(table, id, chunkID(id, q.From)) // the chunk may reach into the range
		before.Desc, before.Limit = true, 1
		find = append(find, before, v.byID(table, chunkID(id, q.From), chunkID(id, max(q.From, q.To))))
		whose = append(whose, i, i)
	}
	closed := make([][]store.Row, len(heads))
	if len(find) == 0 {
		return closed, nil
	}
	got, err := v.readRows(ctx, find...)
	if err != nil {
		return nil, err
	}
	for n, i := range whose {
		closed[i] = append(closed[i], got[n]...)
	}
	return closed, nil
}

// headers reads the chunk headers of series in the range of q, or the chunks with their data if q.Whole. Series without
// chunks are left out, unless q.KeysOnly.
func (v *rowView) headers(ctx context.Context, q *SeriesQuery, heads []*store.Entry[seriesHead]) ([]Series, error) {
	closed, err := v.closedRows(ctx, q, heads)
	if err != nil {
		return nil, err
	}
	decode := headerTable.Decoded
	if q.Whole {
		decode = chunkTable.Decoded
	}
	out := []Series{}
	for i, h := range heads {
		key, err := parseSeriesID(h.Value.id)
		if err != nil {
			return nil, err
		}
		s := Series{Key: key}
		if q.Key != nil && s.Key != *q.Key || q.Provider != "" && s.Key.Provider != q.Provider {
			continue
		}
		if q.KeysOnly {
			out = append(out, s)
			continue
		}
		chunks, err := decode(closed[i])
		if err != nil {
			return nil, err
		}
		if h.Value.open.N > 0 {
			chunks = append(chunks, &store.Entry[closedChunk]{Value: closedChunk{head: h.Value.id, Chunk: h.Value.open}})
		}
		if v.loaded[s.Key] == nil {
			v.loaded[s.Key] = map[int64]closedChunk{}
		}
		for _, e := range chunks {
			c := &e.Value
			if (q.From != 0 || q.To != 0) && !c.Overlaps(q.From, q.To) {
				continue
			}
			v.loaded[s.Key][c.Start] = *c
			s.Chunks = append(s.Chunks, series.Chunk{Header: c.Header})
		}
		if len(s.Chunks) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// Load implements [View]. If the version of a chunk differs from that of the header that Series returned, the data has
// changed and read is called again.
func (v *rowView) Load(ctx context.Context, key SeriesKey, starts []int64) ([]series.Chunk, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(starts, func(t int64) bool { _, ok := v.loaded[key][t]; return !ok }) {
		if _, err := v.Series(ctx, SeriesQuery{Resources: []string{key.Resource}, Key: &key}); err != nil {
			return nil, err
		}
	}
	var find []store.Query
	for _, t := range starts {
		c, ok := v.loaded[key][t]
		if !ok {
			return nil, fmt.Errorf("%w: the series of %s has no chunk with this start", healthlab.NotFound, key.Resource)
		}
		if c.Data == nil {
			find = append(find, chunkTable.One(v.key(chunkID(c.head, t)), store.Plain))
		}
	}
	var got [][]store.Row
	if len(find) > 0 {
		if v.moved {
			return nil, errMoved
		}
		var err error
		if got, err = v.fetch(ctx, find...); err != nil {
			return nil, err
		}
	}
	out := make([]series.Chunk, 0, len(starts))
	for _, t := range starts {
		c := v.loaded[key][t]
		if c.Data == nil {
			stored, err := chunkTable.DecodedOne(got[0])
			if err != nil {
				return nil, err
			}
			if stored == nil || stored.Value.version != c.version {
				v.moved = true
				return nil, errMoved
			}
			c, got = stored.Value, got[1:]
		}
		out = append(out, c.Chunk)
	}
	return out, nil
}
