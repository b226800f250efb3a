package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// LabTests returns the store as an [orders.LabTestStore].
func (s *Store) LabTests() orders.LabTestStore { return labTests{s} }

type labTests struct{ s *Store }

func (v labTests) InsertLabTest(ctx context.Context, t orders.TeamTest) error {
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	t, err := ownTest(t)
	if err != nil {
		return err
	}
	if _, taken := v.s.orders.labTests[t.ID]; taken {
		return fmt.Errorf("%w: the lab test is there", healthlab.Conflict)
	}
	v.s.orders.labTests[t.ID] = t
	return nil
}

func (v labTests) UpdateLabTest(ctx context.Context, team healthlab.TeamID, id orders.LabTestID, change func(*orders.TeamTest) error) (orders.TeamTest, error) {
	if err := v.s.lock(ctx); err != nil {
		return orders.TeamTest{}, err
	}
	defer v.s.mu.Unlock()
	kept, ok := v.s.orders.labTests[id]
	if !ok || kept.Team != team {
		return orders.TeamTest{}, fmt.Errorf("%w: the team has no such lab test", healthlab.NotFound)
	}
	t, err := ownTest(kept)
	if err == nil {
		err = change(&t)
	}
	if err == nil {
		t, err = ownTest(t)
	}
	if err != nil {
		return orders.TeamTest{}, err
	}
	t.ID, t.Team = id, team
	v.s.orders.labTests[id] = t
	return ownTest(t)
}

func (v labTests) TeamTests(ctx context.Context, team healthlab.TeamID, q orders.TeamTestQuery) ([]orders.TeamTest, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	var out []orders.TeamTest
	for _, t := range v.s.orders.labTests {
		if t.Team != team || q.IDs != nil && !slices.Contains(q.IDs, t.ID) ||
			q.Generation == orders.GeneratedManual && t.Auto || q.Generation == orders.GeneratedAuto && !t.Auto {
			continue
		}
		t, err := ownTest(t)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b orders.TeamTest) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]))
	})
	return out, nil
}

// ownTest returns a copy in the form in which tests are kept.
func ownTest(t orders.TeamTest) (orders.TeamTest, error) {
	t.MarkerIDs = slices.Clone(t.MarkerIDs)
	if t.Price != nil {
		price := *t.Price
		t.Price = &price
	}
	t.CreatedAt, t.UpdatedAt = instant(t.CreatedAt), instant(t.UpdatedAt)
	return t, checkText(t.Slug, t.Name, t.Description, string(t.Method), string(t.SampleType), string(t.Status))
}
