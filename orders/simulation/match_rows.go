package simulation

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// runRows stores test runs. Its first index is the digest of the run's idempotency key, which is unique in the
// team.
var runRows = store.Table[MatchTestRecord]{Name: "match_test_run", Unique: [2]bool{true}, Secret: [2]bool{true}, Row: func(t *MatchTestRecord) store.Row {
	return store.Row{Key: runKey(t.Team, t.RunID), Due: t.Due, Index: [2]string{keyIndex(t.Key)}}
}}

func runKey(team healthlab.TeamID, id MatchTestRunID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

func keyIndex(key string) string {
	sum := sha256.Sum256([]byte(key))
	return string(sum[:])
}

// Tables declares the table of [NewMatchTestStore].
func Tables() []store.Definition { return []store.Definition{runRows.Definition()} }

// NewMatchTestStore returns a MatchTestStore over a store whose tables must include [Tables].
func NewMatchTestStore(s store.Store) MatchTestStore { return rows{s} }

type rows struct{ s store.Store }

// StartMatchTestRun implements [MatchTestStore].
func (v rows) StartMatchTestRun(ctx context.Context, t MatchTestRecord) (out MatchTestRecord, added bool, err error) {
	t.Due = healthlab.At(t.Due).Time
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		ask := store.Query{Key: store.Key{Team: t.Team}, By: store.ByFirst}.Equal(keyIndex(t.Key))
		had, err := runRows.Find(tx, ask)
		if err != nil {
			return err
		}
		if added = len(had) == 0; !added {
			out = had[0].Value
			return nil
		}
		if err := runRows.Insert(tx, &t); err != nil {
			return err
		}
		out, err = stored(tx, t.Team, t.RunID)
		return err
	})
	return out, added, err
}

// stored returns a run as the transaction reads it after its writes. NotFound if the team has no such run.
func stored(tx store.Tx, team healthlab.TeamID, id MatchTestRunID) (MatchTestRecord, error) {
	t, err := runRows.Get(tx, runKey(team, id), store.Held)
	if err != nil {
		return MatchTestRecord{}, err
	}
	if t == nil {
		return MatchTestRecord{}, errNoRun()
	}
	return t.Value, nil
}

func errNoRun() error { return fmt.Errorf("%w: the team has no such test run", healthlab.NotFound) }

// MatchTestRun implements [MatchTestStore].
func (v rows) MatchTestRun(ctx context.Context, team healthlab.TeamID, id MatchTestRunID) (MatchTestRecord, error) {
	t, err := runRows.LookOne(ctx, v.s, runRows.Key(runKey(team, id)))
	if err != nil {
		return MatchTestRecord{}, err
	}
	if t == nil {
		return MatchTestRecord{}, errNoRun()
	}
	return t.Value, nil
}

// UpdateMatchTestRun implements [MatchTestStore].
func (v rows) UpdateMatchTestRun(ctx context.Context, team healthlab.TeamID, id MatchTestRunID, change func(*MatchTestRecord) error) (out MatchTestRecord, err error) {
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := runRows.Get(tx, runKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			return errNoRun()
		}
		t := &e.Value
		key, fingerprint := t.Key, t.Fingerprint
		if err := change(t); err != nil {
			return err
		}
		t.Team, t.RunID, t.Key, t.Fingerprint = team, id, key, fingerprint
		t.Due = healthlab.At(t.Due).Time
		if err := runRows.Put(tx, e); err != nil {
			return err
		}
		out, err = stored(tx, team, id)
		return err
	})
	return out, err
}

// ClaimMatchTestRuns implements [MatchTestStore].
func (v rows) ClaimMatchTestRuns(ctx context.Context, n int, lease time.Duration) (out []MatchTestRecord, err error) {
	if n <= 0 {
		return []MatchTestRecord{}, ctx.Err()
	}
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = []MatchTestRecord{}
		due, err := runRows.Find(tx, store.Query{By: store.ByDue, Until: tx.Now(), Limit: n, Lock: store.Skip})
		if err != nil {
			return err
		}
		for _, e := range due {
			e.Value.Due = healthlab.At(tx.Now().Add(lease)).Time
			if err := runRows.Put(tx, e); err != nil {
				return err
			}
			out = append(out, e.Value)
		}
		return nil
	})
	return out, err
}
