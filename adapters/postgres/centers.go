package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

const (
	centersNear = `
with near as (
	select site_code, capabilities, doc, (x - $4) * (x - $4) + (y - $5) * (y - $5) + (z - $6) * (z - $6) as d
	from healthlab.psc_center
	where team_id = $1 and lab_id = $2 and active and cell = any ($3::int[]) and capabilities @> $8::text[]
), hits as (
	select * from near where d <= $7
)
select (select count(*) from hits),
	(select coalesce(array_agg(distinct c), '{}') from hits, unnest(hits.capabilities) c),
	(select coalesce(json_agg(h.doc order by h.d, h.site_code), '[]') from (select * from hits order by d, site_code limit $9) h)`

	centersAt = `
select doc from healthlab.psc_center where team_id = $1 and lab_id = $2 and site_code = any ($3::text[]) order by site_code`

	nextCenters = `
select doc from healthlab.psc_center
where team_id = $1 and lab_id = $2 and active and capabilities @> array[$3::text] and site_code > $4 order by site_code limit $5`

	// So that the next question is planned for what is there, not for an empty table. A
	// role that does not own the table is warned, and left to the server's own upkeep.
	surveyCenters = `analyze healthlab.psc_center`

	deleteCenters = `delete from healthlab.psc_center where team_id = $1 and lab_id = $2 and site_code <> all ($3::text[])`

	keepCenter = `
insert into healthlab.psc_center (team_id, lab_id, site_code, active, cell, x, y, z, capabilities, doc)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (team_id, lab_id, site_code) do update set active = excluded.active, cell = excluded.cell, x = excluded.x, y = excluded.y,
	z = excluded.z, capabilities = excluded.capabilities, doc = excluded.doc`
)

// Centers are the patient service centers that a store keeps: an [appointment.Centers] that
// can be filled.
type Centers struct{ s *Store }

// Centers returns the patient service centers of the store.
func (s *Store) Centers() Centers { return Centers{s} }

// Replace makes a lab's centers exactly these. Invalid as [appointment.CheckCenters], or if
// one is another lab's; then nothing is written.
func (v Centers) Replace(ctx context.Context, lab int, centers []appointment.Center) error {
	if err := appointment.CheckCenters(centers); err != nil {
		return err
	}
	codes := make([]string, 0, len(centers))
	rows := make([][]any, 0, len(centers))
	for i, c := range centers {
		if c.LabID != lab {
			var p healthlab.Problems
			p.Add("other_lab", "is a center of the lab", i, "lab_id")
			return p.Err()
		}
		x, y, z := c.Location.Vector()
		if c.Capabilities == nil {
			c.Capabilities = []appointment.PSCCapability{}
		}
		doc, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("encode center: %w", err)
		}
		if db.Spoilt(doc) {
			return fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)
		}
		has := make([]string, 0, len(c.Capabilities))
		for _, name := range c.Capabilities {
			has = append(has, string(name))
		}
		codes = append(codes, c.SiteCode)
		rows = append(rows, []any{db.AllTeams.UUID, lab, c.SiteCode, !c.Inactive, c.Location.Cell(), x, y, z, has, doc})
	}
	slices.SortFunc(rows, func(a, b []any) int { return compareText(a[2], b[2]) }) // all writers lock in this order
	return v.s.db.Do(ctx, db.AllTeams, db.Writing, func(x *db.Tx) error {
		b := x.Batch()
		b.Queue(deleteCenters, db.AllTeams.UUID, lab, codes)
		for _, row := range rows {
			b.Queue(keepCenter, row...)
		}
		b.Queue(surveyCenters)
		return x.Commit(ctx, b)
	})
}

func compareText(a, b any) int {
	s, _ := a.(string)
	t, _ := b.(string)
	switch {
	case s < t:
		return -1
	case s > t:
		return 1
	}
	return 0
}

// CentersNear implements [appointment.Centers].
func (v Centers) CentersNear(ctx context.Context, q appointment.CenterQuery) (appointment.CentersNear, error) {
	x, y, z := q.Near.Vector()
	cells := appointment.CellsWithin(q.Near, q.Miles)
	wants := make([]string, 0, len(q.Capabilities))
	for _, c := range q.Capabilities {
		wants = append(wants, string(c))
	}
	var out appointment.CentersNear
	var offers []string
	var docs []byte
	err := v.s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) {
		b.Queue(centersNear, db.AllTeams.UUID, q.LabID, cells, x, y, z, appointment.Chord(q.Miles), wants, max(q.Most, 0)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&out.Total, &offers, &docs) })
	})
	if err != nil {
		return appointment.CentersNear{}, err
	}
	for _, name := range offers {
		out.Capabilities = append(out.Capabilities, appointment.PSCCapability(name))
	}
	appointment.SortCapabilities(out.Capabilities)
	if err := json.Unmarshal(docs, &out.Centers); err != nil {
		return appointment.CentersNear{}, fmt.Errorf("decode centers: %w", err)
	}
	return out, nil
}

// CentersAt implements [appointment.Centers].
func (v Centers) CentersAt(ctx context.Context, lab int, codes []string) ([]appointment.Center, error) {
	if err := healthlab.CheckText(codes...); err != nil {
		return nil, ctx.Err() // no center has such a code
	}
	return v.list(ctx, centersAt, db.AllTeams.UUID, lab, codes)
}

// NextCenters implements [appointment.Centers].
func (v Centers) NextCenters(ctx context.Context, lab int, has appointment.PSCCapability, after string, n int) ([]appointment.Center, error) {
	return v.list(ctx, nextCenters, db.AllTeams.UUID, lab, string(has), after, max(n, 0))
}

func (v Centers) list(ctx context.Context, sql string, args ...any) ([]appointment.Center, error) {
	var out []appointment.Center
	err := v.s.db.Do(ctx, db.AllTeams, db.Reading, func(x *db.Tx) error {
		out = nil
		return x.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					var doc []byte
					var c appointment.Center
					if err := rows.Scan(&doc); err != nil {
						return err
					}
					if err := json.Unmarshal(doc, &c); err != nil {
						return fmt.Errorf("decode center: %w", err)
					}
					out = append(out, c)
				}
				return rows.Err()
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
