package orderstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// LabTests returns the store as a [catalogue.LabTestStore].
func (s *Store) LabTests() catalogue.LabTestStore { return labTests{s} }

type labTests struct{ s *Store }

const (
	insertLabTest = `
insert into healthlab.lab_test (team_id, lab_test_id, slug, name, description, method, sample_type, fasting, status, lab_id, marker_ids, created_at, updated_at, auto, price)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

	updateLabTest = `
update healthlab.lab_test set slug = $3, name = $4, description = $5, method = $6, sample_type = $7, fasting = $8, status = $9,
	lab_id = $10, marker_ids = $11, created_at = $12, updated_at = $13, auto = $14, price = $15
where team_id = $1 and lab_test_id = $2`

	selectLabTests = `
select lab_test_id, slug, name, description, method, sample_type, fasting, status, lab_id, marker_ids, created_at, updated_at, auto, price
from healthlab.lab_test where team_id = $1`

	listLabTests       = selectLabTests + ` order by created_at, lab_test_id`
	listLabTestsOfKind = selectLabTests + ` and auto = $2 order by created_at, lab_test_id`
	findLabTests       = selectLabTests + ` and lab_test_id = any($2) order by created_at, lab_test_id`

	lockLabTest = selectLabTests + ` and lab_test_id = $2 for no key update`
)

func (v labTests) InsertLabTest(ctx context.Context, t catalogue.TeamTest) error {
	row, err := keepLabTest(&t)
	if err != nil {
		return err
	}
	return v.s.db.Do(ctx, t.Team, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) { b.Queue(insertLabTest, row...) })
	})
}

func (v labTests) UpdateLabTest(ctx context.Context, team healthlab.TeamID, id catalogue.LabTestID, change func(*catalogue.TeamTest) error) (catalogue.TeamTest, error) {
	var t catalogue.TeamTest
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		b.Queue(lockLabTest, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return scanLabTest(row, team, &t) })
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if err := change(&t); err != nil {
			return db.Answer(err)
		}
		t.ID, t.Team = id, team
		row, err := keepLabTest(&t)
		if err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		b.Queue(updateLabTest, row...)
		return u.Commit(ctx, b)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return catalogue.TeamTest{}, fmt.Errorf("%w: the team has no such lab test", healthlab.NotFound)
	}
	if err != nil {
		return catalogue.TeamTest{}, err
	}
	return t, nil
}

func (v labTests) TeamTests(ctx context.Context, team healthlab.TeamID, q catalogue.TeamTestQuery) ([]catalogue.TeamTest, error) {
	sql, args := listLabTests, []any{team.UUID}
	one := q.Generation == catalogue.GeneratedAuto || q.Generation == catalogue.GeneratedManual
	switch {
	case q.IDs != nil:
		ids := make([]uuid.UUID, len(q.IDs))
		for i, id := range q.IDs {
			ids[i] = id.UUID
		}
		sql, args = findLabTests, append(args, ids)
	case one:
		sql, args = listLabTestsOfKind, append(args, q.Generation == catalogue.GeneratedAuto)
	}
	var out []catalogue.TeamTest
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				var t catalogue.TeamTest
				if err := scanLabTest(rows, team, &t); err != nil {
					return err
				}
				if !one || t.Auto == (q.Generation == catalogue.GeneratedAuto) {
					out = append(out, t)
				}
			}
			return rows.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// keepLabTest puts a test into the form in which it is kept, and returns the arguments
// of insertLabTest and updateLabTest.
func keepLabTest(t *catalogue.TeamTest) ([]any, error) {
	t.CreatedAt, t.UpdatedAt = db.Instant(t.CreatedAt), db.Instant(t.UpdatedAt)
	markers := append([]int(nil), t.MarkerIDs...)
	t.MarkerIDs = markers
	return []any{
		t.Team.UUID, t.ID.UUID, t.Slug, t.Name, t.Description, string(t.Method), string(t.SampleType), t.Fasting, string(t.Status),
		t.LabID, markers, t.CreatedAt, t.UpdatedAt, t.Auto, priceText(t.Price),
	}, healthlab.CheckText(t.Slug, t.Name, t.Description, string(t.Method), string(t.SampleType), string(t.Status))
}

// priceText is a price with all its digits; nil for none.
func priceText(n *catalogue.Number) *string {
	if n == nil {
		return nil
	}
	s := n.String()
	return &s
}

func scanLabTest(row pgx.Row, team healthlab.TeamID, t *catalogue.TeamTest) error {
	*t = catalogue.TeamTest{Team: team}
	var price *string
	err := row.Scan(&t.ID.UUID, &t.Slug, &t.Name, &t.Description, &t.Method, &t.SampleType, &t.Fasting, &t.Status,
		&t.LabID, &t.MarkerIDs, &t.CreatedAt, &t.UpdatedAt, &t.Auto, &price)
	if err != nil {
		return err
	}
	t.CreatedAt, t.UpdatedAt = t.CreatedAt.UTC(), t.UpdatedAt.UTC()
	if price != nil {
		n, err := catalogue.ParseNumber(*price)
		if err != nil {
			return fmt.Errorf("decode lab test: %w", err)
		}
		t.Price = &n
	}
	return nil
}
