package accesslog

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Lines stay when a person is erased, so their rows name no user. The index finds those of a person.
var lineTable = store.Table[Line]{Name: "access_line", Clear: true, Row: func(l *Line) store.Row {
	r := store.Row{Key: store.Key{Team: l.Team, ID: store.Int(l.Seq)}}
	if !l.Person.IsZero() {
		r.Index[0] = store.UUID(l.Person.UUID) + store.Int(l.Seq)
	}
	return r
}}

// headRow is the end of a chain. It is due while lines stand behind its last anchor.
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

// headKey is a key without a team, so that the heads of all teams are one list.
func headKey(team healthlab.TeamID) store.Key { return store.Key{ID: store.UUID(team.UUID)} }

var anchorTable = store.Table[Anchor]{Name: "access_anchor", Clear: true, Row: func(a *Anchor) store.Row {
	return store.Row{Key: store.Key{Team: a.Team, ID: store.Int(a.Seq)}}
}}

// Tables declares what [NewStore] keeps.
func Tables() []store.Definition {
	return []store.Definition{lineTable.Definition(), headTable.Definition(), anchorTable.Definition()}
}

// NewStore returns the chains of a store whose tables include [Tables]. A Service writes the entries of
// concurrent calls together, so one batch of a process at a time holds the head of a team.
func NewStore(s store.Store) Store { return rowStore{s} }

type rowStore struct{ s store.Store }

func (r rowStore) Append(ctx context.Context, entries []Entry, sign func(Head) []byte) error {
	byTeam := map[healthlab.TeamID][]Entry{}
	var teams []healthlab.TeamID
	for _, e := range entries {
		if e.Team.IsZero() {
			return fmt.Errorf("%w: an access has a team", healthlab.Invalid)
		}
		if err := healthlab.CheckText(e.Actor, e.Kind, e.Operation, e.Request, e.Address); err != nil {
			return err
		}
		if byTeam[e.Team] == nil {
			teams = append(teams, e.Team)
		}
		byTeam[e.Team] = append(byTeam[e.Team], e)
	}
	slices.SortFunc(teams, func(a, b healthlab.TeamID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		q := make([]store.Query, len(teams))
		for i, team := range teams {
			q[i] = headTable.One(headKey(team), store.Held)
		}
		got, err := tx.Read(q...)
		if err != nil {
			return err
		}
		for i, team := range teams {
			h, err := headTable.DecodedOne(got[i])
			if err != nil {
				return err
			}
			if h == nil {
				h = &store.Entry[headRow]{Value: headRow{SignedHead: SignedHead{Head: Head{Team: team}}}}
			}
			lines, head := Chain(h.Value.Head, byTeam[team])
			for j := range lines {
				if err := lineTable.Insert(tx, &lines[j]); err != nil {
					return err
				}
			}
			h.Value.SignedHead = SignedHead{Head: head, Signature: sign(head)}
			if err := headTable.Put(tx, h); err != nil {
				return err
			}
		}
		return nil
	})
}

// Heads does not find the team of lines whose head was deleted, unless the query names the team.
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
	line := store.Query{Key: lineTable.Key(store.Key{Team: team}), By: store.ByID, Limit: 1, Bare: true}
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
	rows := store.Query{Key: store.Key{Team: q.Team}, By: store.ByID, From: store.Int(q.After + 1), Limit: q.N}
	if !q.Person.IsZero() {
		person := store.UUID(q.Person.UUID)
		rows.By, rows.From, rows.To = store.ByFirst, person+rows.From, store.End(person)
	}
	found, err := lineTable.Look(ctx, r.s, rows)
	var out []Line
	for _, e := range found {
		out = append(out, e.Value)
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
			return fmt.Errorf("%w: no access log of the team", healthlab.NotFound)
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

// pruneTeam removes the lines up to the last anchor that is older than an instant, and the anchors
// before that one, in transactions of a bounded size.
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
			old := store.Query{
				Key: store.Key{Team: team}, By: store.ByID, To: store.Int(anchors[last].Seq + 1), Limit: page, Lock: store.Held, Bare: true,
			}
			old.Table = lineTable.Name
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
