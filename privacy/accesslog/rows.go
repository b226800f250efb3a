package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// lineRow is a stored line of the access log. A line is sealed when the sealer has given it a number and chained it to
// the line before it. The ID of the row begins with the time at which the line was added. The row has no User, because
// lines stay when the person is erased. Its first index value finds the sealed lines of a person. Its second finds the
// sealed lines of a team by number, and the unsealed lines of the team by ID. Only an unsealed line has a Due: a query
// for due rows finds the unsealed lines of all teams.
type lineRow struct {
	ID string
	Line
}

// First byte of the second index value of a line: whether it is unsealed or sealed (in the hash chain).
const (
	unsealedLine = "p"
	sealedLine   = "s"
)

// always is later than the Due of every line, so a query up to it finds all lines with a Due.
var always = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// lineDoc is the stored document of a line. It omits the team, which is in the key of the row.
type lineDoc struct {
	Entry
	Team struct{} `json:",omitzero"` // hides Entry.Team from the JSON encoder
	Seq  int64    `json:",omitempty"`
	Prev []byte   `json:",omitempty"`
	Hash []byte   `json:",omitempty"`
}

var lineTable = store.Table[lineRow]{
	Name: "access_line", Clear: true, Unique: [2]bool{false, true},
	Row: func(l *lineRow) store.Row {
		r := store.Row{Key: store.Key{Team: l.Team, ID: l.ID}}
		if l.Seq == 0 {
			r.Due, r.Index[1] = store.ParseTime(l.ID), unsealedLine+l.ID
			return r
		}
		r.Index[1] = sealedLine + store.Int(l.Seq)
		if !l.Person.IsZero() {
			r.Index[0] = store.UUID(l.Person.UUID) + store.Int(l.Seq)
		}
		return r
	},
	Encode: func(l *lineRow) ([]byte, error) {
		d := lineDoc{Entry: l.Entry, Seq: l.Seq}
		if l.Seq != 0 {
			d.Prev, d.Hash = l.Prev[:], l.Hash[:]
		}
		return store.JSON(&d)
	},
	Decode: func(r store.Row, l *lineRow) error {
		var d lineDoc
		if err := json.Unmarshal(r.Doc, &d); err != nil {
			return err
		}
		*l = lineRow{r.ID, Line{Entry: d.Entry, Seq: d.Seq}}
		l.Team = r.Team
		copy(l.Prev[:], d.Prev)
		copy(l.Hash[:], d.Hash)
		return nil
	},
}

func unsealedOf(team healthlab.TeamID) store.Query {
	return store.Query{Key: lineTable.Key(store.Key{Team: team}), By: store.BySecond, From: unsealedLine, To: store.End(unsealedLine)}
}

func sealedOf(team healthlab.TeamID, after int64) store.Query {
	return store.Query{Key: lineTable.Key(store.Key{Team: team}), By: store.BySecond, From: sealedLine + store.Int(after+1), To: store.End(sealedLine)}
}

// headRow is the stored head (last line) of a team's chain. It has a Due while Anchored, the number of the last
// anchored line, is below the head's, so that Unanchored finds it.
type headRow struct {
	SignedHead
	Anchored int64
}

var headTable = store.Table[headRow]{Name: "access_head", Clear: true, Row: func(h *headRow) store.Row {
	r := store.Row{Key: headKey(h.Team)}
	if h.Anchored < h.Seq {
		r.Due = time.Unix(0, 0)
	}
	return r
}}

func headKey(team healthlab.TeamID) store.Key {
	// The key has no Team, so one query by ID lists the heads of all teams.
	return store.Key{ID: store.UUID(team.UUID)}
}

var anchorTable = store.Table[Anchor]{Name: "access_anchor", Clear: true, Row: func(a *Anchor) store.Row {
	return store.Row{Key: store.Key{Team: a.Team, ID: store.Int(a.Seq)}}
}}

// Tables returns the tables that the store passed to [NewStore] must have.
func Tables() []store.Definition {
	return []store.Definition{lineTable.Definition(), headTable.Definition(), anchorTable.Definition()}
}

// StoreOptions are the options of [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// NewID makes the ids of lines. Lines that are added in one transaction are sealed in the order of their ids,
	// so the ids of a process must ascend. Default: UUID version 7.
	NewID func() uuid.UUID
}

// NewStore returns an access log that is stored in s. The tables of s must include [Tables].
func NewStore(s store.Store, opts *StoreOptions) Store {
	r := rowStore{s: s, newID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) }}
	if opts != nil && opts.NewID != nil {
		r.newID = opts.NewID
	}
	return r
}

type rowStore struct {
	s     store.Store
	newID func() uuid.UUID
}

func (r rowStore) Append(ctx context.Context, entries []Entry, stored func()) error {
	for _, e := range entries {
		if e.Team.IsZero() {
			return fmt.Errorf("%w: access: team: must be set", healthlab.Invalid)
		}
		if err := healthlab.CheckText(e.Actor, e.Kind, e.Operation, e.Request, e.Address); err != nil {
			return err
		}
	}
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		for _, e := range entries {
			e.At = healthlab.At(e.At).Time
			// The id begins with the store's clock, which is the same for all processes.
			l := lineRow{ID: store.Time(tx.Now()) + store.UUID(r.newID()), Line: Line{Entry: e}}
			if err := lineTable.Insert(tx, &l); err != nil {
				return err
			}
		}
		if stored != nil {
			tx.AfterCommit(stored)
		}
		return nil
	})
}

func (r rowStore) Seal(ctx context.Context, q SealQuery, sign func(Head) []byte) (int, error) {
	if q.N <= 0 {
		return 0, ctx.Err()
	}
	found, err := r.unsealed(ctx, q.Team, q.N)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	teams, n := make([]healthlab.TeamID, 0, len(found)), 0
	for team, of := range found {
		teams = append(teams, team)
		n += int(of)
	}
	slices.SortFunc(teams, func(a, b healthlab.TeamID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	return n, r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		// The lock on each team's head lets only one process at a time seal the lines of the team.
		read := make([]store.Query, 0, 2*len(teams))
		for _, team := range teams {
			read = append(read, headTable.One(headKey(team), store.Held))
		}
		for _, team := range teams {
			lines := unsealedOf(team).Hold()
			if lines.Limit = q.N; n == q.N { // the limit was reached: take of each team only the lines that were counted
				lines.Limit = int(found[team])
			}
			read = append(read, lines)
		}
		got, err := tx.Read(read...)
		if err != nil {
			return err
		}
		for i, team := range teams {
			if err := sealLines(tx, team, got[i], got[len(teams)+i], sign); err != nil {
				return err
			}
		}
		return nil
	})
}

// sealLines appends unsealed lines of a team to its hash chain, and stores the new head with a signature.
func sealLines(tx store.Tx, team healthlab.TeamID, headRows, lineRows []store.Row, sign func(Head) []byte) error {
	lines, err := lineTable.Decoded(lineRows)
	if err != nil || len(lines) == 0 { // another process has sealed the lines meanwhile
		return err
	}
	h, err := headTable.DecodedOne(headRows)
	if err != nil {
		return err
	}
	if h == nil {
		h = &store.Entry[headRow]{Value: headRow{SignedHead: SignedHead{Head: Head{Team: team}}}}
	}
	entries := make([]Entry, len(lines))
	for i, l := range lines {
		entries[i] = l.Value.Entry
	}
	chained, head := Chain(h.Value.Head, entries)
	for i, l := range lines {
		l.Value.Line = chained[i]
		if err := lineTable.Put(tx, l); err != nil {
			return err
		}
	}
	h.Value.SignedHead = SignedHead{Head: head, Signature: sign(head)}
	return headTable.Put(tx, h)
}

func (r rowStore) Unsealed(ctx context.Context, team healthlab.TeamID) (map[healthlab.TeamID]int64, error) {
	return r.unsealed(ctx, team, 0)
}

// unsealed counts, by team, the unsealed lines among the n oldest unsealed ones; all unsealed lines if n is 0. A
// zero team means all teams.
func (r rowStore) unsealed(ctx context.Context, team healthlab.TeamID, n int) (map[healthlab.TeamID]int64, error) {
	q := store.Query{Key: lineTable.Key(store.Key{}), By: store.ByDue, Until: always}
	if !team.IsZero() {
		q = unsealedOf(team)
	}
	q.Limit, q.Bare = n, true
	got, err := r.s.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	out := map[healthlab.TeamID]int64{}
	for _, l := range got[0] {
		out[l.Team]++
	}
	return out, nil
}

// Heads implements [Store]. If the row of a team's head was deleted, only a query for this team finds it.
func (r rowStore) Heads(ctx context.Context, q HeadQuery) ([]SignedHead, error) {
	if q.N <= 0 {
		return nil, ctx.Err()
	}
	if !q.Team.IsZero() {
		return r.headOf(ctx, q.Team)
	}
	last := ""
	if !q.After.IsZero() {
		last = store.UUID(q.After.UUID)
	}
	found, err := headTable.Look(ctx, r.s, store.Query{By: store.ByID}.After(last, q.N))
	var out []SignedHead
	for _, e := range found {
		out = append(out, e.Value.SignedHead)
	}
	return out, err
}

func (r rowStore) headOf(ctx context.Context, team healthlab.TeamID) ([]SignedHead, error) {
	line := sealedOf(team, 0)
	line.Limit, line.Bare = 1, true
	got, err := r.s.Read(ctx, headTable.One(headKey(team), store.Plain), line)
	if err != nil {
		return nil, err
	}
	h, err := headTable.DecodedOne(got[0])
	switch {
	case err != nil:
		return nil, err
	case h != nil:
		return []SignedHead{h.Value.SignedHead}, nil
	case len(got[1]) > 0:
		return []SignedHead{{Head: Head{Team: team}}}, nil
	}
	return nil, nil
}

func (r rowStore) Lines(ctx context.Context, q Query) ([]Line, error) {
	if q.N <= 0 {
		return nil, ctx.Err()
	}
	rows := sealedOf(q.Team, q.After)
	if !q.Person.IsZero() {
		person := store.UUID(q.Person.UUID)
		rows.By, rows.From, rows.To = store.ByFirst, person+store.Int(q.After+1), store.End(person)
	}
	rows.Limit = q.N
	found, err := lineTable.Look(ctx, r.s, rows)
	var out []Line
	for _, e := range found {
		out = append(out, e.Value.Line)
	}
	return out, err
}

func (r rowStore) Unanchored(ctx context.Context, n int) ([]Head, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	found, err := headTable.Look(ctx, r.s, store.Query{By: store.ByDue, Until: time.Unix(0, 0), Limit: n})
	var out []Head
	for _, e := range found {
		out = append(out, e.Value.Head)
	}
	return out, err
}

func (r rowStore) AddAnchor(ctx context.Context, a Anchor) error {
	if err := healthlab.CheckText(a.KeyID); err != nil {
		return err
	}
	a.At = healthlab.At(a.At).Time
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(headTable.One(headKey(a.Team), store.Held), anchorTable.One(anchorTable.Row(&a).Key, store.Held))
		if err != nil {
			return err
		}
		h, err := headTable.DecodedOne(got[0])
		switch {
		case err != nil:
			return err
		case h == nil:
			return fmt.Errorf("%w: the access log of the team has no sealed line", healthlab.NotFound)
		case len(got[1]) > 0:
			return nil
		}
		h.Value.Anchored = max(h.Value.Anchored, a.Seq)
		if err := headTable.Put(tx, h); err != nil {
			return err
		}
		return anchorTable.Insert(tx, &a)
	})
}

func (r rowStore) Anchors(ctx context.Context, team healthlab.TeamID) ([]Anchor, error) {
	found, err := anchorTable.Look(ctx, r.s, store.Query{Key: store.Key{Team: team}, By: store.ByID})
	var out []Anchor
	for _, e := range found {
		out = append(out, e.Value)
	}
	return out, err
}

func (r rowStore) Prune(ctx context.Context, before time.Time) error {
	for q := (HeadQuery{N: page}); ; {
		heads, err := r.Heads(ctx, q)
		if err != nil {
			return err
		}
		for _, h := range heads {
			q.After = h.Team
			if err := r.pruneTeam(ctx, h.Team, before); err != nil {
				return err
			}
		}
		if len(heads) < page {
			return nil
		}
	}
}

// pruneTeam deletes a team's lines up to its last anchor from before an instant, and the anchors older than that
// one. Each transaction deletes at most one page of lines.
func (r rowStore) pruneTeam(ctx context.Context, team healthlab.TeamID, before time.Time) error {
	anchors, err := r.Anchors(ctx, team)
	if err != nil {
		return err
	}
	last := -1
	for i := range anchors {
		if anchors[i].At.Before(before) {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	for done := false; !done; {
		err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
			old := sealedOf(team, 0).Hold()
			old.To, old.Limit, old.Bare = sealedLine+store.Int(anchors[last].Seq+1), page, true
			got, err := tx.Read(old)
			if err != nil {
				return err
			}
			for _, row := range got[0] {
				tx.Delete(row.Key)
			}
			done = len(got[0]) < page
			if done {
				for _, a := range anchors[:last] {
					tx.Delete(anchorTable.Key(anchorTable.Row(&a).Key))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
