package healthdata

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// IngestSummaries stores summaries of one resource, and sends events about new and changed summaries. It fills
// in the id, the source and missing fields of the given summaries. Refused items and errors are those of
// [Service.IngestSamples].
func (s *Service) IngestSummaries(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, resource string, up Upload, items []Summary) (Counts, error) {
	r, err := resourceOf(resource, ClassSummary)
	if err != nil {
		return Counts{}, fmt.Errorf("ingest summaries: %w", err)
	}
	if err := s.starting(ctx, team, user, &up, r); err != nil {
		return Counts{}, fmt.Errorf("ingest summaries: %w", err)
	}
	in, err := s.admit(ctx, team, user, up, r)
	if err != nil {
		return Counts{}, fmt.Errorf("ingest summaries: %w", err)
	}
	refused := refusals{unparsed: up.Unparsed}
	good := make([]Summary, 0, len(items))
	for i, item := range items {
		var q healthlab.Problems
		if in.completeSummary(&q, item); len(q) > 0 {
			refused.add(i, q)
			continue
		}
		good = append(good, item)
	}
	if err := refused.uploadError(len(items), up.Atomic); err != nil {
		return Counts{}, fmt.Errorf("ingest summaries: %w", err)
	}
	var out Counts
	refused.addTo(&out)
	kept := in.newestInWindow(good, &out)
	size := max(len(kept), 1) // the number of summaries in a part
	if up.Within != nil && size > SummariesOfPart {
		slices.SortStableFunc(kept, func(a, b Summary) int { return a.index().Compare(b.index()) })
		size = SummariesOfPart
	}
	for begin := 0; begin == 0 || begin < len(kept); begin += size {
		var got Received
		write, err := in.prepare(ctx, kept[begin:min(begin+size, len(kept))], &got)
		if err != nil {
			return Counts{}, fmt.Errorf("ingest summaries: %w", err)
		}
		err = up.within(ctx, func(ctx context.Context) error {
			if begin == 0 && len(kept) > 0 {
				if err := in.putDevice(ctx, newestOf(kept)); err != nil {
					return err
				}
			}
			if err := write(ctx); err != nil {
				return err
			}
			told := got
			if begin == 0 { // the report of the first part contains the summaries that were not written
				told.Counts = out
				told.Counts.add(&got.Counts)
			}
			in.reportUpload(ctx, &told)
			return nil
		})
		if err != nil {
			return Counts{}, fmt.Errorf("ingest summaries: %w", err)
		}
		out.add(&got.Counts)
	}
	return out, nil
}

// newestOf returns the latest index time of some summaries.
func newestOf(items []Summary) (newest time.Time) {
	for _, item := range items {
		if at := item.index(); at.After(newest) {
			newest = at
		}
	}
	return newest
}

// ReceiveSummaries stores the parts of a provider's response as [Service.IngestSummaries] does, and returns the result
// of each part. Each summary is checked by itself: refused summaries are listed in Received.Refusals, and the others
// are stored. If the source of a part is invalid, all summaries of the part are refused. Device fields that cannot be
// stored are left out. The stored Raw payload of a summary stays if the new version has none. Summaries with one
// identity and different content are all refused, even in different parts. All parts must be of one provider.
//
// The errors are those of IngestSummaries, except those about summaries and about sources.
func (s *Service) ReceiveSummaries(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, resource string, parts []SummaryPart) ([]Received, error) {
	r, err := resourceOf(resource, ClassSummary)
	if err != nil {
		return nil, fmt.Errorf("receive summaries: %w", err)
	}
	out := make([]Received, len(parts))
	checked := make([]checkedPart, len(parts))
	for i := range parts {
		up := parts[i].Upload
		up.Device = up.Device.normalized()
		in, err := s.admit(ctx, team, user, up, r)
		if invalid := (*healthlab.InvalidError)(nil); errors.As(err, &invalid) {
			out[i].refuseAll(len(parts[i].Items), invalid.Problems)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("receive summaries: %w", err)
		}
		checked[i] = in.checkItems(parts[i].Items, &out[i])
	}
	if err := dropAmbiguous(checked, out); err != nil {
		return nil, fmt.Errorf("receive summaries: %w", err)
	}
	for i := range checked {
		if checked[i].in == nil {
			continue
		}
		err := checked[i].in.restorePayloads(ctx, checked[i].good)
		if err == nil {
			err = checked[i].in.put(ctx, checked[i].good, &out[i])
		}
		if err != nil {
			return nil, fmt.Errorf("receive summaries: %w", err)
		}
	}
	return out, nil
}

// restorePayloads sets the stored Raw payload on items without one. A workout that was read from its recording, for
// example, comes without the provider's document about it.
func (in *intake) restorePayloads(ctx context.Context, items []Summary) error {
	bare := func(item Summary) bool { return item.head().Raw == nil }
	if !in.settings.ProviderRawData || !slices.ContainsFunc(items, bare) {
		return nil
	}
	without := slices.DeleteFunc(slices.Clone(items), func(item Summary) bool { return !bare(item) })
	return in.data.View(ctx, in.team, in.user.ID, func(v View) (err error) {
		for _, item := range without {
			h := item.head()
			if h.Raw, err = payload(ctx, v, in.resource.Slug, h.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkedPart has the accepted items of a part and their positions in the part.
type checkedPart struct {
	in   *intake // nil if the whole part is refused
	good []Summary
	at   []int
}

// checkItems returns the valid items with their positions, and adds the invalid ones to got.Refusals.
func (in *intake) checkItems(items []Summary, got *Received) checkedPart {
	part := checkedPart{in: in}
	for i, item := range items {
		var q healthlab.Problems
		if in.completeSummary(&q, item); len(q) > 0 {
			got.Refusals = append(got.Refusals, Refusal{i, q})
			continue
		}
		part.good, part.at = append(part.good, item), append(part.at, i)
	}
	return part
}

// dropAmbiguous removes items with one id and different content from parts, and adds them to the Refusals of their part
// in got.
func dropAmbiguous(parts []checkedPart, got []Received) error {
	first := map[uuid.UUID][]byte{}
	differ := map[uuid.UUID]bool{}
	for i := range parts {
		for _, item := range parts[i].good {
			doc, err := json.Marshal(item)
			if err != nil {
				return fmt.Errorf("encode summary: %w", err)
			}
			id := item.head().ID
			if was, ok := first[id]; !ok {
				first[id] = doc
			} else if !bytes.Equal(was, doc) {
				differ[id] = true
			}
		}
	}
	for i := range parts {
		p := &parts[i]
		kept := make([]Summary, 0, len(p.good))
		for k, item := range p.good {
			if !differ[item.head().ID] {
				kept = append(kept, item)
				continue
			}
			var q healthlab.Problems
			q.Add("duplicate", "must not be the id of two summaries with different contents; both are refused", "external_id")
			got[i].Refusals = append(got[i].Refusals, Refusal{p.at[k], q})
		}
		p.good = kept
	}
	return nil
}

// put writes summaries and adds the outcome to got.
func (in *intake) put(ctx context.Context, items []Summary, got *Received) error {
	kept := in.newestInWindow(items, &got.Counts)
	if len(kept) == 0 {
		return nil
	}
	var part Received
	write, err := in.prepare(ctx, kept, &part)
	if err != nil {
		return err
	}
	if err := in.putDevice(ctx, newestOf(kept)); err != nil {
		return err
	}
	if err := write(ctx); err != nil {
		return err
	}
	got.Counts.add(&part.Counts)
	got.Sent, got.Oldest, got.Newest, got.Days = part.Sent, part.Oldest, part.Newest, part.Days
	return nil
}

// prepare fills in offsets, parts and heart rate zones of kept from stored data. It returns the function that writes the
// summaries and sets the counts of got. write may run more than once.
func (in *intake) prepare(ctx context.Context, kept []Summary, got *Received) (write func(context.Context) error, err error) {
	if err := in.restoreSummaryOffsets(ctx, kept); err != nil {
		return nil, err
	}
	if err := in.fillZones(ctx, kept); err != nil {
		return nil, err
	}
	records, err := in.mergedRecords(ctx, kept)
	if err != nil {
		return nil, err
	}
	for i, item := range kept {
		got.addItem(records[i].Index, item.day())
	}
	if len(kept) == 0 {
		return func(context.Context) error { return nil }, nil
	}
	events := func(results []PutResult) ([]healthlab.Event, error) {
		got.Counts, got.Sent = Counts{}, 0
		var events []healthlab.Event
		for i, res := range results {
			if res.Record == nil {
				got.count(res.Outcome)
			}
			if !in.emitsEvents() {
				continue
			}
			item, err := summaryOf(kept, i, res)
			if err != nil {
				return nil, err
			}
			e, err := in.sessionEvent(item, res)
			if err != nil {
				return nil, err
			}
			events = append(events, e...)
		}
		got.Sent = len(events)
		return events, nil
	}
	return func(ctx context.Context) error {
		for attempt := 1; ; attempt++ {
			err := in.data.PutRecords(ctx, in.team, in.user.ID, records, events)
			if !errors.Is(err, healthlab.Precondition) || attempt == mergeAttempts {
				return err
			}
			// Another upload has changed a version with which a summary was merged.
			if records, err = in.mergedRecords(ctx, kept); err != nil {
				return err
			}
		}
	}, nil
}

func summaryOf(written []Summary, i int, res PutResult) (Summary, error) {
	if res.Record != nil {
		return res.Record.Decode()
	}
	return written[i], nil
}

// sessionEvent returns the event about a summary after a write, or none. A session that another session covers
// ([Record].CoveredBy) has no created event. A session that becomes covered has a deleted event, and a session that is
// no longer covered a created event.
func (in *intake) sessionEvent(item Summary, res PutResult) ([]healthlab.Event, error) {
	id := item.head().ID.String()
	outcome := res.Outcome
	switch {
	case res.Covered && res.WasCovered, res.Covered && outcome == PutNew:
		return nil, nil
	case res.Covered:
		data, err := json.Marshal(SummaryDeleted{ID: item.head().ID, UserID: in.user.ID, Source: in.providers.source(item.head().Source)})
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		return []healthlab.Event{in.deletedEvent(in.resource.Slug, id, data)}, nil
	case res.WasCovered:
		outcome = PutNew
	case outcome == PutSame:
		return nil, nil
	}
	updated := in.now
	if res.Record != nil {
		updated = healthlab.At(res.Record.UpdatedAt)
	}
	data, err := in.summaryData(item, res, updated)
	if err != nil {
		return nil, err
	}
	return []healthlab.Event{in.event(outcome, id, data)}, nil
}

// completeSummary completes an uploaded summary: it resolves local times, derives the id and missing fields, and
// reports invalid fields.
func (in *intake) completeSummary(p *healthlab.Problems, item Summary) {
	if newSummary := in.resource.New(); !sameType(item, newSummary) {
		p.Add("type", "must be a summary of "+in.resource.Slug)
		return
	}
	h := item.head()
	check.Optional(p, &h.ExternalID, "external_id")
	*h = Head{UserID: in.user.ID, Source: in.Source, ExternalID: h.ExternalID, Raw: h.Raw, Partial: h.Partial}
	if !in.settings.ProviderRawData {
		h.Raw = nil
	}
	check.Texts(p, item)
	dropUnmeasured(item)
	if meal, ok := item.(*Meal); ok {
		meal.convertEnergy()
	}
	item.check(p)
	checkBounds(p, in.resource.Slug, item)
	readOffsets(p, item)
	if len(*p) > 0 {
		return
	}
	for _, m := range item.times() {
		if !check.Year(p, *m.at, m.name) {
			continue
		}
		*m.at = in.clock.instant(healthlab.At(m.at.Time))
		in.checkFuture(p, *m.at, m.name)
		check.Earliest(p, *m.at, m.name)
	}
	in.checkDay(p, item)
	if len(*p) > 0 {
		return
	}
	in.setOffsets(item)
	if cycle, ok := item.(*SleepCycle); ok && cycle.SleepID == uuid.Nil {
		cycle.SleepID = in.summaryID("sleep", cycle.key(instantKey(cycle.SessionStart)))
	}
	h.ID = in.summaryID(in.resource.Slug, item.naturalKey())
	item.complete()
	if e, ok := item.(*Electrocardiogram); ok && e.SourceDeviceModel == nil && in.Upload.Device != nil {
		e.SourceDeviceModel = in.Upload.Device.Model
	}
}

// readOffsets sets the UTC offsets that are written in the times of a summary, and reports offsets that no time
// zone has.
func readOffsets(p *healthlab.Problems, item Summary) {
	offset, zone := item.zone()
	if offset == nil {
		return
	}
	s, isSession := item.(session)
	if *offset == nil && zone == nil {
		var counts *int
		if isSession {
			start, end := s.session()
			o := s.offsets()
			o.StartTimezoneOffset = cmp.Or(o.StartTimezoneOffset, writtenOffset(start))
			o.EndTimezoneOffset = cmp.Or(o.EndTimezoneOffset, writtenOffset(end))
			counts = cmp.Or(o.StartTimezoneOffset, o.EndTimezoneOffset)
			if item.times()[0].at == end {
				counts = cmp.Or(o.EndTimezoneOffset, o.StartTimezoneOffset)
			}
		} else if times := item.times(); len(times) > 0 {
			counts = writtenOffset(times[0].at)
			for _, m := range times {
				counts = cmp.Or(counts, writtenOffset(m.at))
			}
		}
		*offset = counts
	}
	check.Offset(p, *offset, "timezone_offset")
	if isSession {
		check.Offset(p, s.offsets().StartTimezoneOffset, "start_timezone_offset")
		check.Offset(p, s.offsets().EndTimezoneOffset, "end_timezone_offset")
	}
}

// checkDay reports a local day before 1900 and, for a summary without an instant, a day in the future. A predicted
// menstrual cycle may begin in the future. The day of a profile is the birth date.
func (in *intake) checkDay(p *healthlab.Problems, item Summary) {
	name := "calendar_date"
	cycle, isCycle := item.(*MenstrualCycle)
	if isCycle {
		name = "period_start"
	}
	if day := item.day(); !day.IsZero() && day.Year < check.FirstYear {
		p.Add(check.CodeEarly, "must be 1900-01-01 or later", name)
		return
	}
	if f, ok := item.(*Profile); ok && f.BirthDate != nil && f.BirthDate.After(healthlab.DateOf(in.now.In(in.clock.loc))) {
		p.Add(check.CodeFuture, "must not be in the future", "birth_date")
	}
	if _, ok := item.(*Activity); !ok && (!isCycle || cycle.IsPredicted) {
		return
	}
	in.checkFuture(p, healthlab.At(item.day().At(in.clock.loc)), name)
}

// setOffsets sets the UTC offset of a summary, and the offsets at the start and the end of a session: the item's own
// offset, otherwise that of its zone, otherwise that of the fallback zone.
func (in *intake) setOffsets(item Summary) {
	offset, name := item.zone()
	if offset == nil {
		return
	}
	at := item.day().At(in.clock.loc)
	if ts := item.times(); len(ts) > 0 {
		at = ts[0].at.Time
	}
	if in.assumes(at, *offset, name) {
		date := dateOf(item)
		item.head().assumed = assumption{offset: true, day: date != nil && date.IsZero()}
	}
	own := *offset
	o := in.clock.offset(at, own, name)
	*offset = &o
	s, ok := item.(session)
	if !ok {
		return
	}
	start, end := s.session()
	atStart := in.clock.offset(start.Time, cmp.Or(s.offsets().StartTimezoneOffset, own), name)
	atEnd := in.clock.offset(end.Time, cmp.Or(s.offsets().EndTimezoneOffset, own), name)
	if item.times()[0].at == end {
		atEnd = o
	} else {
		atStart = o
	}
	*s.offsets() = SessionOffsets{StartTimezoneOffset: &atStart, EndTimezoneOffset: &atEnd}
}

func (in *intake) summaryID(resource, natural string) uuid.UUID {
	return in.summaryIDOf(&in.Source, resource, natural)
}

func (in *intake) summaryIDOf(of *Source, resource, natural string) uuid.UUID {
	return SummaryID(in.team, in.user.ID, in.Provider, of.Type, resource, of.recordKey(in.provider, natural))
}

// newestInWindow returns the summaries inside of the user's ingestion window, and of several with one id only the last.
// It counts the others in c, as Dropped and as Same.
func (in *intake) newestInWindow(items []Summary, c *Counts) []Summary {
	newest := make(map[uuid.UUID]int, len(items))
	for i, item := range items {
		if in.user.inIngestionWindow(item.day()) {
			newest[item.head().ID] = i
		}
	}
	kept := make([]Summary, 0, len(newest))
	for i, item := range items {
		switch at, ok := newest[item.head().ID]; {
		case !ok:
			c.Dropped++
		case at != i:
			c.Same++
		default:
			kept = append(kept, item)
		}
	}
	return kept
}

// record returns the [Record] with which a summary is stored.
func (in *intake) record(item Summary) (Record, error) {
	doc, err := encodeRecord(item)
	if err != nil {
		return Record{}, err
	}
	h := item.head()
	rec := Record{
		Resource: in.resource.Slug, ID: h.ID, Provider: in.Provider, SourceType: in.Source.Type,
		Origin: in.origin, Index: item.index(), Doc: doc, Raw: h.Raw, CreatedAt: in.now.Time, UpdatedAt: in.now.Time, Replaces: h.replaces,
	}
	if offset, _ := item.zone(); offset != nil && *offset != nil {
		rec.Offset = **offset
	}
	switch v := item.(type) {
	case *Sleep:
		rec.Session = series.Range{From: v.BedtimeStart.UnixMicro(), To: v.BedtimeStop.UnixMicro()}
	case *Workout:
		rec.Session = series.Range{From: v.TimeStart.UnixMicro(), To: v.TimeEnd.UnixMicro()}
	}
	return rec, nil
}
