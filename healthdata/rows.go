package healthdata

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/store"
)

// DataTables declares the tables of [NewData]. If encryptSamples is true, samples are encrypted as records are.
// Otherwise samples are stored in plain text, except those whose values are texts. Samples that were written with the
// other setting can be read.
func DataTables(encryptSamples bool) []store.Definition {
	out := []store.Definition{recordTable.Definition(), rawTable.Definition(), recordVersions.Definition(), removedTable.Definition()}
	for _, d := range []store.Definition{headTable.Definition(), headerTable.Definition(), chunkTable.Definition()} {
		d.Clear, d.Sealed, d.ReadClear = !encryptSamples, isOfTexts, true
		out = append(out, d)
	}
	return out
}

// DataOptions adjusts what NewData returns. The zero value, and nil, mean the defaults.
type DataOptions struct {
	// Events appends the events of writes. Default: no event is written.
	Events store.Events
	// Changes is called in the transaction of each write. Default: none.
	Changes Changes
	// UsersElsewhere reports whether the store does not contain all users: an unknown user is then treated as
	// live. Default: an unknown user is healthlab.NotFound.
	UsersElsewhere bool
}

// Span is a period in microseconds since 1970, both ends included.
type Span struct{ From, To int64 }

func (s Span) union(o Span) Span { return Span{min(s.From, o.From), max(s.To, o.To)} }

// Changes is notified of changed data in the transaction of the write, to schedule dependent work. It must be
// safe for concurrent use.
type Changes interface {
	// Queries returns the queries for the rows of a team that Changed reads. A write runs them together with its own
	// queries, so that Changed needs no further round trip.
	Queries(team healthlab.TeamID) []store.Query
	// Changed receives the changed period of each resource, by slug: from the earliest to the latest of the timestamps
	// of changed samples and the former and present Index of changed records.
	Changed(ctx context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID, spans map[string]Span) error
}

// NewData returns a Data that stores its rows in s, whose tables include [DataTables]. Users are the rows of
// table [store.UserTable].
func NewData(s store.Store, opts *DataOptions) Data {
	d := &dataRows{s: s}
	if opts != nil {
		d.opts = *opts
	}
	return d
}

// dataRows implements [Data] on the rows of a [store.Store].
type dataRows struct {
	s    store.Store
	opts DataOptions
}

func (d *dataRows) admitted(u store.UserState) error {
	if u.Live || !u.Known && d.opts.UsersElsewhere {
		return nil
	}
	return noUser()
}

// readUser reads the row of the user, the rows that Changes needs, and those of more, the queries of the write, in one
// round trip. It returns healthlab.NotFound if the user does not exist or is deleted.
func (d *dataRows) readUser(tx store.Tx, team healthlab.TeamID, user healthlab.UserID, more []store.Query) error {
	q := append([]store.Query{store.User(team, user)}, more...)
	if d.opts.Changes != nil {
		q = append(q, d.opts.Changes.Queries(team)...)
	}
	got, err := tx.Read(q...)
	if err != nil {
		return err
	}
	return d.admitted(store.StateOf(got[0]))
}

// eventsAtOnce is how many events one append writes.
const eventsAtOnce = 1000

// finish appends the events of a write and calls Changes. It clears events after they are appended, to free their
// memory.
func (d *dataRows) finish(ctx context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID, events []healthlab.Event, spans changedSpans) error {
	for part := range slices.Chunk(events, eventsAtOnce) {
		if err := store.AppendEvents(ctx, d.opts.Events, tx, part); err != nil {
			return err
		}
		clear(part)
	}
	if d.opts.Changes == nil || len(spans) == 0 {
		return nil
	}
	return d.opts.Changes.Changed(ctx, tx, team, user, spans)
}

// changedSpans is the changed period of each resource in a write.
type changedSpans map[string]Span

func (c changedSpans) add(resource string, from, to int64) {
	span := Span{from, to}
	if was, ok := c[resource]; ok {
		span = span.union(was)
	}
	c[resource] = span
}

// isOfTexts reports whether the samples of a series are texts. id is the id of any row of the series.
func isOfTexts(id string) bool {
	if len(id) < 16 {
		return false
	}
	slug, _, _ := store.CutText(id[16:])
	r := ResourceBySlug(slug)
	return r != nil && r.Value == ValueText
}

// owner is the user and team of a row.
type owner struct {
	team healthlab.TeamID
	user healthlab.UserID
}

func (o owner) key(id string) store.Key {
	// The ID of every row begins with the user.
	return store.Key{Team: o.team, User: o.user, ID: id}
}

func resourceID(user healthlab.UserID, resource string) string {
	return store.UUID(user.UUID) + store.Text(resource)
}

func (k *SeriesKey) id(user healthlab.UserID) string {
	// The id of a row begins with the part that the series of all apps and devices of one source share.
	return k.publishedID(user) + store.Text(k.Origin.App) + store.UUID(k.Origin.Device)
}

func (k *SeriesKey) publishedID(user healthlab.UserID) string {
	return resourceID(user, k.Resource) + store.Text(k.Provider) + store.Text(string(k.SourceType)) + store.Text(k.Part)
}

// parseSeriesID returns the key of a series from the id of its row.
func parseSeriesID(id string) (k SeriesKey, err error) {
	if len(id) < 16 {
		return k, errDamagedID
	}
	rest := id[16:]
	for _, to := range []*string{&k.Resource, &k.Provider, (*string)(&k.SourceType), &k.Part, &k.Origin.App} {
		var ok bool
		if *to, rest, ok = store.CutText(rest); !ok {
			return k, errDamagedID
		}
	}
	if len(rest) != 16 {
		return k, errDamagedID
	}
	k.Origin.Device = store.ParseUUID(rest)
	return k, nil
}

var errDamagedID = errors.New("the id of a series is damaged")

// recordRow is a stored record.
type recordRow struct {
	owner
	Record
}

// recordMeta is the first line of a record's stored document. The rest of the document is the record's Doc.
type recordMeta struct {
	Resource   string     `json:"r"`
	Provider   string     `json:"p"`
	SourceType SourceType `json:"s"`
	Index      time.Time  `json:"i"`
	Offset     int        `json:"o,omitempty"`
	CreatedAt  time.Time  `json:"c"`
	UpdatedAt  time.Time  `json:"u"`
	HasRaw     bool       `json:"w,omitempty"`
	App        string     `json:"a,omitempty"`
	Device     uuid.UUID  `json:"d,omitzero"`
	Begin      int64      `json:"b,omitempty"`
	End        int64      `json:"e,omitempty"`
	CoveredBy  uuid.UUID  `json:"v,omitzero"`
}

func recordID(user healthlab.UserID, resource string, id uuid.UUID) string {
	return resourceID(user, resource) + store.UUID(id)
}

func idIndex(resource string, id uuid.UUID) string { return store.Text(resource) + store.UUID(id) }

// recordTable has the records without Raw. The first index value is the index time.
var recordTable = store.Table[recordRow]{
	Name: "record", PerUser: true,
	Row: func(r *recordRow) store.Row {
		return store.Row{Key: r.key(recordID(r.user, r.Resource, r.ID)), Index: [2]string{
			resourceID(r.user, r.Resource) + store.Time(r.Index) + store.UUID(r.ID), idIndex(r.Resource, r.ID),
		}}
	},
	Encode: func(r *recordRow) ([]byte, error) {
		doc, err := store.JSON(&recordMeta{
			Resource: r.Resource, Provider: r.Provider, SourceType: r.SourceType, Index: r.Index, Offset: r.Offset,
			CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, HasRaw: r.Raw != nil, App: r.Origin.App, Device: r.Origin.Device,
			Begin: r.Session.From, End: r.Session.To, CoveredBy: r.CoveredBy,
		})
		if err != nil {
			return nil, err
		}
		return append(append(doc, '\n'), r.Doc...), nil
	},
	Decode: func(row store.Row, r *recordRow) error {
		first, doc, _ := bytes.Cut(row.Doc, []byte("\n"))
		var m recordMeta
		if err := json.Unmarshal(first, &m); err != nil {
			return err
		}
		r.owner = owner{row.Team, row.User}
		r.Record = Record{
			Resource: m.Resource, ID: store.ParseUUID(row.ID[len(row.ID)-16:]), Provider: m.Provider, SourceType: m.SourceType,
			Origin: Origin{m.App, m.Device}, Session: series.Range{From: m.Begin, To: m.End}, CoveredBy: m.CoveredBy, Index: m.Index, Offset: m.Offset, Doc: doc, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
		}
		if m.HasRaw {
			r.Raw = []byte{} // the payload is in rawTable
		}
		return nil
	},
}

// rawTable has Record.Raw, under the key and the first index value of the record, so that lists of records read
// no payloads.
var rawTable = store.Table[recordRow]{
	Name: "record_raw", PerUser: true,
	Row: func(r *recordRow) store.Row {
		row := recordTable.Row(r)
		row.Index[1] = ""
		return row
	},
	Encode: func(r *recordRow) ([]byte, error) { return r.Raw, nil },
}

// recordVersion is a row whose Revision increases with every change of a user's records of a resource, so that readers
// notice the change.
type recordVersion struct {
	owner
	resource string
}

var recordVersions = store.Table[recordVersion]{
	Name: "record_version", Clear: true, PerUser: true,
	Row: func(v *recordVersion) store.Row {
		return store.Row{Key: v.key(resourceID(v.user, v.resource))}
	},
	Encode: func(*recordVersion) ([]byte, error) { return []byte{}, nil },
	Decode: func(store.Row, *recordVersion) error { return nil },
}

// seriesHead is the row with the state of a series and with its last chunk while that is small (the open chunk). Other
// chunks are closed and have rows of their own. Every change of the series writes its seriesHead.
type seriesHead struct {
	owner
	id string
	// version counts the changes of the series.
	version int64
	// closed is an upper bound of the times of samples in closed chunks; series.MinTime - 1 if there are no closed
	// chunks.
	closed int64
	// closedEnd is an upper bound of the ends of intervals in closed chunks.
	closedEnd int64
	// open is the last chunk while it is small; N is 0 if there is none. It begins after closed.
	open series.Chunk
}

// headForm is the first byte of a stored seriesHead. headBytes is the number of bytes before its open chunk.
const (
	headForm  = 1
	headBytes = 25
)

var headTable = store.Table[seriesHead]{
	Name: "series", PerUser: true,
	Row: func(h *seriesHead) store.Row { return store.Row{Key: h.key(h.id)} },
	Encode: func(h *seriesHead) ([]byte, error) {
		doc := binary.LittleEndian.AppendUint64([]byte{headForm}, uint64(h.version))
		doc = binary.LittleEndian.AppendUint64(doc, uint64(h.closed))
		doc = binary.LittleEndian.AppendUint64(doc, uint64(h.closedEnd))
		if h.open.N == 0 {
			return doc, nil
		}
		return appendChunk(doc, &h.open), nil
	},
	Decode: func(r store.Row, h *seriesHead) (err error) {
		h.owner, h.id = owner{r.Team, r.User}, r.ID
		if len(r.Doc) < headBytes || r.Doc[0] != headForm {
			return series.ErrCorrupt
		}
		h.version = int64(binary.LittleEndian.Uint64(r.Doc[1:]))
		h.closed = int64(binary.LittleEndian.Uint64(r.Doc[9:]))
		h.closedEnd = int64(binary.LittleEndian.Uint64(r.Doc[17:]))
		if len(r.Doc) > headBytes {
			h.open, err = parseChunk(r.Doc[headBytes:])
		}
		return err
	},
}

func appendChunk(dst []byte, c *series.Chunk) []byte {
	at := len(dst)
	dst = c.Append(append(dst, 0))
	dst[at] = byte(len(dst) - at - 1)
	return append(dst, c.Data...)
}

func parseChunk(doc []byte) (c series.Chunk, err error) {
	if len(doc) == 0 || len(doc) < 1+int(doc[0]) {
		return c, series.ErrCorrupt
	}
	n := 1 + int(doc[0])
	if c.Header, err = series.ParseHeader(doc[1:n]); err == nil {
		c.Data = doc[n:len(doc):len(doc)] // not copied: rows do not share memory
	}
	return c, err
}

// closedChunk is a full chunk of a series, or only its header.
type closedChunk struct {
	owner
	head string // the id of the series
	// version is the version of the series when the chunk was written. Different contents of a chunk have
	// different versions.
	version int64
	series.Chunk
}

func chunkID(head string, start int64) string { return head + store.Int(start) }

func (c *closedChunk) row() store.Row { return store.Row{Key: c.key(chunkID(c.head, c.Start))} }

func (c *closedChunk) parse(r store.Row) (rest []byte, err error) {
	if len(r.ID) < 8 || len(r.Doc) < 9 || r.Doc[0] != chunkForm {
		return nil, series.ErrCorrupt
	}
	c.owner, c.head = owner{r.Team, r.User}, r.ID[:len(r.ID)-8]
	c.version = int64(binary.LittleEndian.Uint64(r.Doc[1:]))
	return r.Doc[9:], nil
}

// chunkForm is the first byte of a stored closed chunk.
const chunkForm = 1

func (c *closedChunk) versioned() []byte {
	return binary.LittleEndian.AppendUint64([]byte{chunkForm}, uint64(c.version))
}

// headerTable has the headers of closed chunks, by series and start, so that queries are planned and sums are
// computed without reading data.
var headerTable = store.Table[closedChunk]{
	Name: "series_header", PerUser: true,
	Row:    func(c *closedChunk) store.Row { return c.row() },
	Encode: func(c *closedChunk) ([]byte, error) { return c.Append(c.versioned()), nil },
	Decode: func(r store.Row, c *closedChunk) error {
		rest, err := c.parse(r)
		if err == nil {
			c.Header, err = series.ParseHeader(rest)
		}
		return err
	},
}

// chunkTable has the closed chunks, header and data, by series and start.
var chunkTable = store.Table[closedChunk]{
	Name: "series_chunk", PerUser: true,
	Row:    func(c *closedChunk) store.Row { return c.row() },
	Encode: func(c *closedChunk) ([]byte, error) { return appendChunk(c.versioned(), &c.Chunk), nil },
	Decode: func(r store.Row, c *closedChunk) error {
		rest, err := c.parse(r)
		if err == nil {
			c.Chunk, err = parseChunk(rest)
		}
		return err
	},
}
