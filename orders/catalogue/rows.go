package catalogue

import (
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// testRows stores the lab tests of teams. Its first index sorts them by time of creation, then by id.
var testRows = store.Table[TeamTest]{Name: "order_lab_test", Row: func(t *TeamTest) store.Row {
	id := store.UUID(t.ID.UUID)
	return store.Row{Key: testKey(t.Team, t.ID), Index: [2]string{store.Time(t.CreatedAt) + id}}
}}

func testKey(team healthlab.TeamID, id LabTestID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

// testOwner stores the team of a lab test by the test's id, so that no two teams use one id.
type testOwner struct {
	ID   LabTestID
	Team healthlab.TeamID
}

var testOwners = store.Table[testOwner]{Name: "order_lab_test_owner", Clear: true, Row: func(o *testOwner) store.Row {
	return store.Row{Key: store.Key{ID: store.UUID(o.ID.UUID)}}
}}

// Tables declares the tables of [NewLabTestStore].
func Tables() []store.Definition {
	return []store.Definition{testRows.Definition(), testOwners.Definition()}
}

// NewLabTestStore returns a LabTestStore in a store whose tables must include [Tables].
func NewLabTestStore(s store.Store) LabTestStore { return rows{s} }

type rows struct{ s store.Store }

// InsertLabTest implements [LabTestStore].
func (v rows) InsertLabTest(ctx context.Context, t TeamTest) error {
	t.CreatedAt, t.UpdatedAt = healthlab.At(t.CreatedAt).Time, healthlab.At(t.UpdatedAt).Time
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		owner, err := testOwners.Get(tx, store.Key{ID: store.UUID(t.ID.UUID)}, store.Held)
		if err != nil {
			return err
		}
		if owner != nil {
			return fmt.Errorf("%w: a lab test with this id exists", healthlab.Conflict)
		}
		if err := testOwners.Insert(tx, &testOwner{t.ID, t.Team}); err != nil {
			return err
		}
		return testRows.Insert(tx, &t)
	})
}

// UpdateLabTest implements [LabTestStore].
func (v rows) UpdateLabTest(ctx context.Context, team healthlab.TeamID, id LabTestID, change func(*TeamTest) error) (out TeamTest, err error) {
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := testRows.Get(tx, testKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			return fmt.Errorf("%w: the team has no such lab test", healthlab.NotFound)
		}
		t := &e.Value
		if err := change(t); err != nil {
			return err
		}
		t.ID, t.Team = id, team
		t.CreatedAt, t.UpdatedAt = healthlab.At(t.CreatedAt).Time, healthlab.At(t.UpdatedAt).Time
		if err := testRows.Put(tx, e); err != nil {
			return err
		}
		kept, err := testRows.Get(tx, testKey(team, id), store.Held)
		if err != nil {
			return err
		}
		out = kept.Value
		return nil
	})
	return out, err
}

// testPage is the number of lab tests that are read at a time.
const testPage = 200

// TeamTests implements [LabTestStore].
func (v rows) TeamTests(ctx context.Context, team healthlab.TeamID, q TeamTestQuery) ([]TeamTest, error) {
	var out []TeamTest
	ask := store.Query{Key: store.Key{Team: team}, By: store.ByFirst}
	for last := ""; ; {
		list, err := testRows.Look(ctx, v.s, ask.After(last, testPage))
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			t := e.Value
			last = testRows.Row(&t).Index[0]
			if (q.IDs == nil || slices.Contains(q.IDs, t.ID)) &&
				(q.Generation != GeneratedManual || !t.Auto) && (q.Generation != GeneratedAuto || t.Auto) {
				out = append(out, t)
			}
		}
		if len(list) < testPage {
			return out, nil
		}
	}
}
