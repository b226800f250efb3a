package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/accesslog"
)

type accessLog struct {
	*database
	access map[healthlab.TeamID]*accessChain
}

// accessChain is the log of one team.
type accessChain struct {
	head    accesslog.SignedHead
	lines   []accesslog.Line
	anchors []accesslog.Anchor
}

func (v accessLog) Append(ctx context.Context, entries []accesslog.Entry, sign func(accesslog.Head) []byte) error {
	byTeam := map[healthlab.TeamID][]accesslog.Entry{}
	for _, e := range entries {
		if e.Team.IsZero() {
			return fmt.Errorf("%w: an access has a team", healthlab.Invalid)
		}
		if err := healthlab.CheckText(e.Actor, e.Kind, e.Operation, e.Request, e.Address); err != nil {
			return err
		}
		byTeam[e.Team] = append(byTeam[e.Team], e)
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	for team, list := range byTeam {
		c := v.access[team]
		if c == nil {
			c = &accessChain{}
			v.access[team] = c
		}
		lines, head := accesslog.Chain(c.head.Head, list)
		c.lines, c.head = append(c.lines, lines...), accesslog.SignedHead{Head: head, Signature: sign(head)}
	}
	return nil
}

func (v accessLog) Heads(ctx context.Context, q accesslog.HeadQuery) ([]accesslog.SignedHead, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []accesslog.SignedHead
	for team, c := range v.access {
		if (q.Team.IsZero() || q.Team == team) && bytes.Compare(team.UUID[:], q.After.UUID[:]) > 0 {
			h := c.head
			h.Team, h.Signature = team, slices.Clone(h.Signature)
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b accesslog.SignedHead) int { return bytes.Compare(a.Team.UUID[:], b.Team.UUID[:]) })
	return out[:min(max(q.N, 0), len(out))], nil
}

func (v accessLog) Lines(ctx context.Context, q accesslog.Query) ([]accesslog.Line, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []accesslog.Line
	if c := v.access[q.Team]; c != nil {
		for _, l := range c.lines {
			if len(out) < q.N && l.Seq > q.After && (q.Person.IsZero() || l.Person == q.Person) {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

func (v accessLog) Unanchored(ctx context.Context, n int) ([]accesslog.Head, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []accesslog.Head
	for _, c := range v.access {
		if len(out) < n && (len(c.anchors) == 0 || c.anchors[len(c.anchors)-1].Seq < c.head.Seq) {
			out = append(out, c.head.Head)
		}
	}
	return out, nil
}

func (v accessLog) AddAnchor(ctx context.Context, a accesslog.Anchor) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	c := v.access[a.Team]
	if c == nil {
		return fmt.Errorf("%w: no access log of the team", healthlab.NotFound)
	}
	at, known := slices.BinarySearchFunc(c.anchors, a.Seq, func(x accesslog.Anchor, seq int64) int { return int(x.Seq - seq) })
	if !known {
		a.At, a.Signature = instant(a.At), slices.Clone(a.Signature)
		c.anchors = slices.Insert(c.anchors, at, a)
	}
	return nil
}

func (v accessLog) Anchors(ctx context.Context, team healthlab.TeamID) ([]accesslog.Anchor, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	if c := v.access[team]; c != nil {
		return slices.Clone(c.anchors), nil
	}
	return nil, nil
}

func (v accessLog) Prune(ctx context.Context, before time.Time) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	for _, c := range v.access {
		for len(c.anchors) > 1 && c.anchors[1].At.Before(before) {
			c.anchors = c.anchors[1:]
		}
		if len(c.anchors) > 0 && c.anchors[0].At.Before(before) {
			end := c.anchors[0].Seq
			c.lines = slices.DeleteFunc(c.lines, func(l accesslog.Line) bool { return l.Seq <= end })
		}
	}
	return nil
}
