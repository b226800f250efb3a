package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/personkey"
)

type matchTestRunRecord struct {
	team healthlab.TeamID
	id   matchtest.RunID
	key  string
	due  time.Time
	data []byte
}

type matchTestRuns struct {
	*database
	runs map[matchtest.RunID]*matchTestRunRecord
}

// keep encodes a test run, under the team's own key: its persons are made up.
func (v matchTestRuns) keep(ctx context.Context, t matchtest.Record) (*matchTestRunRecord, error) {
	t.Due = instant(t.Due)
	data, err := sealDocument(ctx, v.keys, personkey.Ref{Team: t.Team}, personkey.RowMatchTestRun(t.RunID), t)
	if err != nil {
		return nil, err
	}
	return &matchTestRunRecord{t.Team, t.RunID, t.Key, t.Due, data}, nil
}

func (v matchTestRuns) load(ctx context.Context, k *matchTestRunRecord) (t matchtest.Record, err error) {
	return t, openDocument(ctx, v.keys, personkey.Ref{Team: k.team}, personkey.RowMatchTestRun(k.id), k.data, &t)
}

func (v matchTestRuns) StartMatchTestRun(ctx context.Context, t matchtest.Record) (matchtest.Record, bool, error) {
	kept, err := v.keep(ctx, t)
	if err != nil {
		return matchtest.Record{}, false, err
	}
	if err := v.lock(ctx); err != nil {
		return matchtest.Record{}, false, err
	}
	defer v.mu.Unlock()
	for _, k := range v.runs {
		if k.team == t.Team && k.key == t.Key {
			had, err := v.load(ctx, k)
			return had, false, err
		}
	}
	v.runs[t.RunID] = kept
	fresh, err := v.load(ctx, kept)
	return fresh, true, err
}

func (v matchTestRuns) get(ctx context.Context, team healthlab.TeamID, id matchtest.RunID) (matchtest.Record, error) {
	k := v.runs[id]
	if k == nil || k.team != team {
		return matchtest.Record{}, fmt.Errorf("%w: test run", healthlab.NotFound)
	}
	return v.load(ctx, k)
}

func (v matchTestRuns) MatchTestRun(ctx context.Context, team healthlab.TeamID, id matchtest.RunID) (matchtest.Record, error) {
	if err := v.lock(ctx); err != nil {
		return matchtest.Record{}, err
	}
	defer v.mu.Unlock()
	return v.get(ctx, team, id)
}

func (v matchTestRuns) UpdateMatchTestRun(ctx context.Context, team healthlab.TeamID, id matchtest.RunID, change func(*matchtest.Record) error) (matchtest.Record, error) {
	if err := v.lock(ctx); err != nil {
		return matchtest.Record{}, err
	}
	defer v.mu.Unlock()
	t, err := v.get(ctx, team, id)
	if err != nil {
		return matchtest.Record{}, err
	}
	was := t
	if err := change(&t); err != nil {
		return matchtest.Record{}, err
	}
	t.Team, t.RunID, t.Key, t.Fingerprint = was.Team, was.RunID, was.Key, was.Fingerprint
	kept, err := v.keep(ctx, t)
	if err != nil {
		return matchtest.Record{}, err
	}
	v.runs[id] = kept
	return v.load(ctx, kept)
}

func (v matchTestRuns) ClaimMatchTestRuns(ctx context.Context, n int, lease time.Duration) ([]matchtest.Record, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	now := v.clock()
	var due []matchtest.RunID
	for id, k := range v.runs {
		if !k.due.IsZero() && !k.due.After(now) {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b matchtest.RunID) int {
		return cmp.Or(v.runs[a].due.Compare(v.runs[b].due), compareIDs(a.UUID, b.UUID))
	})
	out := []matchtest.Record{}
	for _, id := range due[:max(min(n, len(due)), 0)] {
		t, err := v.load(ctx, v.runs[id])
		if err != nil {
			return nil, err
		}
		t.Due = now.Add(lease)
		kept, err := v.keep(ctx, t)
		if err != nil {
			return nil, err
		}
		v.runs[id] = kept
		if t, err = v.load(ctx, kept); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
