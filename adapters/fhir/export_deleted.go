package fhir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
)

// deletionsAtOnce is the largest number of entries in one bundle of deletions.
const deletionsAtOnce = 100

// writeDeletions writes transaction bundles that delete resources. A resource is a type and an id, such as
// Observation/1.
func writeDeletions(out *bufio.Writer, resources []string) error {
	for part := range slices.Chunk(resources, deletionsAtOnce) {
		var entries []any
		for _, at := range part {
			entries = append(entries, map[string]any{"request": map[string]any{"method": "DELETE", "url": at}})
		}
		if err := encode(out, map[string]any{"resourceType": "Bundle", "type": "transaction", "entry": entries}); err != nil {
			return err
		}
		if err := out.WriteByte('\n'); err != nil {
			return fmt.Errorf("send file: %w", err)
		}
	}
	return nil
}

func (s *server) searchesAny(of rights) bool {
	return slices.ContainsFunc(s.kinds(), func(k kind) bool { return of.searches(k.name) })
}

func (x *export) hasType(name string) bool {
	return len(x.Types) == 0 || slices.Contains(x.Types, name)
}

// errFound stops a search for deletions at the first deletion.
var errFound = errors.New("deletion found")

// removedShards returns the indexes of the shards that have a person with data removed since x.Since. It is called when
// the manifest is read, so that the manifest includes a removal that began before the export and ended after it.
func (s *server) removedShards(ctx context.Context, team healthlab.TeamID, x *export) (out []int, err error) {
	if x.Since.IsZero() {
		return nil, nil
	}
	users := map[uuid.UUID]bool{}
	list, err := s.Health.UsersWithRemovals(ctx, team, x.Since)
	if err != nil {
		return nil, fmt.Errorf("list users with removals: %w", err)
	}
	for _, id := range list {
		users[id.UUID] = true
	}
	if x.reports() && s.Orders != nil {
		err := s.withdrawn(ctx, orders.Query{Team: team, UpdatedFrom: x.Since}, func(r *orders.Record) { users[r.UserID.UUID] = true })
		if err != nil {
			return nil, err
		}
	}
	for n := 0; n*shard < len(x.Persons); n++ {
		for _, id := range x.Persons[n*shard : min((n+1)*shard, len(x.Persons))] {
			if !users[id] {
				continue
			}
			err := s.removed(ctx, team, healthlab.UserID{UUID: id}, x, func(string) error { return errFound })
			if errors.Is(err, errFound) {
				out = append(out, n)
				break
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// writeRemoved writes bundles that delete the resources which persons no longer have, as far as rights allow their
// types.
func (s *server) writeRemoved(ctx context.Context, out *bufio.Writer, team healthlab.TeamID, x *export, of rights, ids []uuid.UUID) error {
	if x.Since.IsZero() {
		return nil
	}
	for _, id := range ids {
		var all []string
		err := s.removed(ctx, team, healthlab.UserID{UUID: id}, x, func(at string) error {
			if kind, _, _ := strings.Cut(at, "/"); of.searches(kind) {
				all = append(all, at)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := writeDeletions(out, all); err != nil {
			return err
		}
	}
	return nil
}

// removed calls use with each resource that a person no longer has: observations of days whose data was removed, and
// reports that were withdrawn. For a deleted person it calls use never, because another file deletes the Patient.
func (s *server) removed(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, x *export, use func(resource string) error) error {
	days, err := s.Health.RemovedDays(ctx, team, user, x.Since)
	if healthlab.KindOf(err) == healthlab.NotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read removed days: %w", err)
	}
	if x.hasType("Observation") {
		if err := s.removedObservations(ctx, team, user, x.By, days, use); err != nil {
			return err
		}
	}
	if !x.reports() || s.Orders == nil {
		return nil
	}
	var gone []string
	err = s.withdrawn(ctx, orders.Query{Team: team, User: user, UpdatedFrom: x.Since}, func(r *orders.Record) {
		for _, kind := range reportKinds {
			switch {
			case !x.hasType(kind):
			case kind != "DocumentReference":
				gone = append(gone, kind+"/"+r.ID.String())
			case s.Documents != nil:
				gone = append(gone, kind+"/"+r.ID.String()+".results")
			}
		}
	})
	if err != nil {
		return err
	}
	for _, at := range gone {
		if err := use(at); err != nil {
			return err
		}
	}
	return nil
}

// reportKinds lists the resource types that are made once per order from its report.
var reportKinds = []string{"DiagnosticReport", "Provenance", "DocumentReference"}

func (x *export) reports() bool { return slices.ContainsFunc(reportKinds, x.hasType) }

// withdrawn calls use with each order found by q whose report the laboratory has withdrawn.
func (s *server) withdrawn(ctx context.Context, q orders.Query, use func(*orders.Record)) error {
	const size = 100
	q.Size = size
	for q.Page = 1; ; q.Page++ {
		list, err := s.Orders.List(ctx, q)
		if err != nil {
			return fmt.Errorf("list orders: %w", err)
		}
		for i := range list.Orders {
			o := &list.Orders[i]
			if o.Status != orders.StageFailed && o.Status != orders.StageCancelled {
				continue
			}
			r, err := s.Orders.Record(ctx, q.Team, o.ID)
			if healthlab.KindOf(err) == healthlab.NotFound {
				continue // the order was deleted after it was listed
			}
			if err != nil {
				return fmt.Errorf("read order: %w", err)
			}
			if !r.HasResults() && !r.ReportedAt.IsZero() {
				use(&r)
			}
		}
		if q.Page*size >= list.Total || len(list.Orders) == 0 {
			return nil
		}
	}
}

// usesSource reports whether a measurement uses data of a source type.
func (m *measurement) usesSource(source healthdata.SourceType) bool {
	sensor := strings.Contains(sensors, "'"+string(source)+"'")
	switch m.key {
	case "gs":
		return sensor
	case "gf":
		return source == healthdata.SourceFingerprick
	case "gu":
		return !sensor && source != healthdata.SourceFingerprick
	}
	return true
}

// removedObservations calls use with each observation that the removed data of its day may have produced, and that does
// not exist now.
func (s *server) removedObservations(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, by interval, removed []healthdata.RemovedDay,
	use func(resource string) error,
) error {
	if by == "" {
		by = byDay
	}
	earliest, latest := s.firstDay(), s.lastDay()
	for i := range measurements {
		m := &measurements[i]
		if !m.hasInterval(by) {
			continue
		}
		hours := map[healthlab.Date]uint32{}
		for _, d := range removed {
			if d.Resource == m.source() && m.usesSource(d.SourceType) && !d.Day.Before(earliest) && !d.Day.After(latest) {
				hours[d.Day] |= d.Hours
			}
		}
		days := slices.SortedFunc(maps.Keys(hours), healthlab.Date.Compare)
		for len(days) > 0 {
			first := days[0]
			n, _ := slices.BinarySearchFunc(days, first.AddDays(windows[by]), healthlab.Date.Compare)
			has, err := s.idsOfDays(ctx, team, user, m, by, first, days[n-1])
			if err != nil {
				return err
			}
			for _, day := range days[:n] {
				for _, id := range observationIDs(user, m, by, day, hours[day]) {
					if has[id] {
						continue
					}
					if err := use("Observation/" + id); err != nil {
						return err
					}
				}
			}
			days = days[n:]
		}
	}
	return nil
}

// observationIDs returns the ids that the observations of a day would have. For hourly observations hours is a bit
// mask: bit n is the hour that begins at n o'clock.
func observationIDs(user healthlab.UserID, m *measurement, by interval, day healthlab.Date, hours uint32) (out []string) {
	if by == byDay {
		return []string{measurementID{user, m, by, day, 0}.String()}
	}
	for hour := range 24 {
		if hours&(1<<hour) != 0 {
			out = append(out, measurementID{user, m, by, day, hour}.String())
		}
	}
	return out
}

// idsOfDays returns the ids of the existing observations of the days from first to last, both inclusive.
func (s *server) idsOfDays(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, m *measurement, by interval, first, last healthlab.Date) (map[string]bool, error) {
	out := map[string]bool{}
	all, err := s.queryMeasurements(ctx, team, user, []*measurement{m}, by, first, last)
	if err != nil {
		return nil, err
	}
	for i := range all {
		out[all[i].start().ID] = true
	}
	return out, nil
}
