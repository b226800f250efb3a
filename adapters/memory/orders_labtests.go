package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

type labTests struct {
	*database
	orders *orderTable
}

func (v labTests) InsertLabTest(ctx context.Context, t catalogue.TeamTest) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t, err := normalTest(t)
	if err != nil {
		return err
	}
	if _, taken := v.orders.labTests[t.ID]; taken {
		return fmt.Errorf("%w: the lab test is there", healthlab.Conflict)
	}
	v.orders.labTests[t.ID] = t
	return nil
}

func (v labTests) UpdateLabTest(ctx context.Context, team healthlab.TeamID, id catalogue.LabTestID, change func(*catalogue.TeamTest) error) (catalogue.TeamTest, error) {
	if err := v.lock(ctx); err != nil {
		return catalogue.TeamTest{}, err
	}
	defer v.mu.Unlock()
	kept, ok := v.orders.labTests[id]
	if !ok || kept.Team != team {
		return catalogue.TeamTest{}, fmt.Errorf("%w: the team has no such lab test", healthlab.NotFound)
	}
	t, err := normalTest(kept)
	if err == nil {
		err = change(&t)
	}
	if err == nil {
		t, err = normalTest(t)
	}
	if err != nil {
		return catalogue.TeamTest{}, err
	}
	t.ID, t.Team = id, team
	v.orders.labTests[id] = t
	return normalTest(t)
}

func (v labTests) TeamTests(ctx context.Context, team healthlab.TeamID, q catalogue.TeamTestQuery) ([]catalogue.TeamTest, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []catalogue.TeamTest
	for _, t := range v.orders.labTests {
		if t.Team != team || q.IDs != nil && !slices.Contains(q.IDs, t.ID) ||
			q.Generation == catalogue.GeneratedManual && t.Auto || q.Generation == catalogue.GeneratedAuto && !t.Auto {
			continue
		}
		t, err := normalTest(t)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b catalogue.TeamTest) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]))
	})
	return out, nil
}

// normalTest returns a copy in the form in which tests are kept.
func normalTest(t catalogue.TeamTest) (catalogue.TeamTest, error) {
	t.MarkerIDs = slices.Clone(t.MarkerIDs)
	if t.Price != nil {
		price := *t.Price
		t.Price = &price
	}
	t.CreatedAt, t.UpdatedAt = instant(t.CreatedAt), instant(t.UpdatedAt)
	return t, healthlab.CheckText(t.Slug, t.Name, t.Description, string(t.Method), string(t.SampleType), string(t.Status))
}
