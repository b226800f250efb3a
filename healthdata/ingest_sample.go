package healthdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// IngestSamples stores samples of one timeseries and one source, and sends events about new and changed samples. Of
// several samples with one identity the last one is stored. Values are converted to the resource's unit.
//
// Each sample is checked by itself: an unreadable or impossible sample is refused (Counts.Refused), and the others are
// stored. If no sample is left, or if a sample is refused and the upload is Atomic, nothing is stored and the error is
// healthlab.Invalid. The error lists the problems by index and field, for at most [MostRefusals] samples.
//
// It also returns healthlab.NotFound if the team has no such user, healthlab.Invalid with every problem of the upload's
// own fields, and a healthlab.RuleError of type [RuleNoConnection] or [RuleConsentWithdrawn].
func (s *Service) IngestSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, resource string, up Upload, samples []Sample) (Counts, error) {
	r, err := resourceOf(resource, ClassTimeseries)
	if err != nil {
		return Counts{}, fmt.Errorf("ingest samples: %w", err)
	}
	if err := s.starting(ctx, team, user, &up, r); err != nil {
		return Counts{}, fmt.Errorf("ingest samples: %w", err)
	}
	in, err := s.admit(ctx, team, user, up, r)
	if err != nil {
		return Counts{}, fmt.Errorf("ingest samples: %w", err)
	}
	refused := refusals{unparsed: up.Unparsed}
	batches, assumed, got := in.columns(samples, refused.add)
	if err := refused.uploadError(len(samples), up.Atomic); err != nil {
		return Counts{}, fmt.Errorf("ingest samples: %w", err)
	}
	refused.addTo(&got.Counts)
	if err := in.merge(ctx, batches, assumed, &got); err != nil {
		return Counts{}, fmt.Errorf("ingest samples: %w", err)
	}
	in.reportUpload(ctx, &got)
	return got.Counts, nil
}

// ReceiveSamples stores samples that a provider sent, as [Service.IngestSamples] does. Each sample is checked by
// itself: refused samples are listed in Received.Refusals, and the others are stored. If the source is invalid, all
// samples are refused. Device fields that cannot be stored are left out.
//
// The errors are those of IngestSamples, except those about samples and about the source.
func (s *Service) ReceiveSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, resource string, up Upload, samples []Sample) (Received, error) {
	r, err := resourceOf(resource, ClassTimeseries)
	if err != nil {
		return Received{}, fmt.Errorf("receive samples: %w", err)
	}
	up.Device = up.Device.normalized()
	in, err := s.admit(ctx, team, user, up, r)
	if invalid := (*healthlab.InvalidError)(nil); errors.As(err, &invalid) {
		var got Received
		got.refuseAll(len(samples), invalid.Problems)
		return got, nil
	}
	if err != nil {
		return Received{}, fmt.Errorf("receive samples: %w", err)
	}
	var refused []Refusal
	batches, assumed, got := in.columns(samples, func(i int, q healthlab.Problems) { refused = append(refused, Refusal{i, q}) })
	if err := in.merge(ctx, batches, assumed, &got); err != nil {
		return Received{}, fmt.Errorf("receive samples: %w", err)
	}
	got.Refusals = refused
	return got, nil
}

// merge writes batches of samples with their events and adds the outcome to got. assumed has, for each batch, the times
// of the samples whose offset comes from the fallback zone.
func (in *intake) merge(ctx context.Context, batches []SampleBatch, assumed []assumedTimes, got *Received) error {
	if len(batches) == 0 {
		return nil
	}
	if err := in.restoreSampleOffsets(ctx, batches, assumed); err != nil {
		return err
	}
	if err := in.putDevice(ctx, got.Newest); err != nil {
		return err
	}
	var merged Counts
	sent := 0
	err := in.data.MergeSamples(ctx, in.team, in.user.ID, batches, func(outcomes []series.Outcome) ([]healthlab.Event, error) {
		merged, sent = Counts{}, 0
		var news changedSamples
		for i := range outcomes {
			merged.New += outcomes[i].New
			merged.Changed += outcomes[i].Changed
			merged.Same += outcomes[i].Same
			news.add(batches[i].Samples, &outcomes[i])
		}
		if !in.emitsEvents() || news.len() == 0 {
			return nil, nil
		}
		sent = news.len()
		return in.sampleEvents(&news), nil
	})
	if err != nil {
		return err
	}
	got.New, got.Changed, got.Sent = merged.New, merged.Changed, sent
	got.Same += merged.Same
	return nil
}

// columns checks samples and sorts them into one batch for each series. It passes the index and the problems of a
// refused sample to refuse, and leaves out samples outside of the user's ingestion window. The second result has, for
// each batch, the times of the samples whose offset comes from the fallback zone. The third result counts the samples.
func (in *intake) columns(samples []Sample, refuse func(i int, q healthlab.Problems)) ([]SampleBatch, []assumedTimes, Received) {
	var got Received
	var assumed []assumedTimes
	var builders []series.Builder
	var parts []string
	attrs := in.attrs()
	var row series.Sample
	for i := range samples {
		var q healthlab.Problems
		row = series.Sample{Attrs: attrs}
		in.sample(&q, &samples[i], &row)
		if len(q) > 0 {
			refuse(i, q)
			continue
		}
		local := time.UnixMicro(row.Time).UTC().Add(time.Duration(row.Offset) * time.Second)
		day := healthlab.DateOf(local)
		if !in.user.inIngestionWindow(day) {
			got.Dropped++
			continue
		}
		got.addItem(time.UnixMicro(row.Time).UTC(), day)
		part := in.seriesPart(&row)
		at := slices.Index(parts, part)
		if at < 0 {
			at = len(parts)
			parts = append(parts, part)
			builders = append(builders, series.Builder{})
			assumed = append(assumed, nil)
		}
		if in.assumes(time.UnixMicro(row.Time), samples[i].givenOffset(), nil) {
			if assumed[at] == nil {
				assumed[at] = assumedTimes{}
			}
			assumed[at][row.Time] = true
		}
		builders[at].Add(row)
	}
	batches := make([]SampleBatch, len(parts))
	for i, part := range parts {
		block := builders[i].Block()
		got.Same += builders[i].Len() - block.Len()
		batches[i] = SampleBatch{
			Key:     SeriesKey{Resource: in.resource.Slug, Provider: in.Provider, SourceType: in.Source.Type, Part: part, Origin: in.origin},
			Samples: block,
			Span:    in.resource.Span(),
		}
	}
	return batches, assumed, got
}

// attrs returns the attributes that all samples of an upload share.
func (in *intake) attrs() series.Attrs {
	a := series.Attrs{App: deref(in.Source.AppID), Sport: deref(in.Source.Sport)}
	if in.Source.DeviceID != nil {
		a.Device = *in.Source.DeviceID
	}
	if in.Source.WorkoutID != nil {
		a.Workout = *in.Source.WorkoutID
	}
	if a.Sport == "wheelchair_push" {
		a.Sport = "wheelchair_pushing"
	}
	return a
}

// seriesPart returns the [SeriesKey].Part of a sample: its type for a resource with KeyType, its workout's id for
// KeyWorkout, the device's id if [TeamSettings].DevicesApart applies, and otherwise an empty text.
func (in *intake) seriesPart(row *series.Sample) string {
	switch in.resource.Key {
	case KeyType:
		return row.Type
	case KeyWorkout:
		return row.Workout.String()
	default:
		if in.seriesByDevice() && in.Source.DeviceID != nil {
			return in.Source.DeviceID.String()
		}
		return ""
	}
}

func (in *intake) seriesByDevice() bool {
	return in.settings.DevicesApart && in.provider.Class == classStore && in.resource.Movement
}

// sample converts one sample to a row with the attributes of the upload, and reports its invalid fields.
func (in *intake) sample(p *healthlab.Problems, v *Sample, row *series.Sample) {
	in.sampleTime(p, v, row)
	in.sampleFields(p, v, row)
	before := len(*p)
	in.sampleValue(p, v, row)
	if len(*p) == before {
		in.sampleSource(v, row)
	}
}

// sampleTime reads the time and the UTC offset of a sample.
func (in *intake) sampleTime(p *healthlab.Problems, v *Sample, row *series.Sample) {
	at := v.Timestamp
	if at.IsZero() && v.Start != nil {
		at = *v.Start
	}
	if at.IsZero() {
		p.Add("missing", "must be set, and be 1900-01-01 or later", "timestamp")
		return
	}
	if v.Start != nil && !v.Start.Equal(at.Time) {
		p.Add("order", "must equal timestamp, or be left out", "start")
	}
	if v.End == nil && in.resource.Shape == Interval {
		p.Add("missing", "must be set: samples of "+in.resource.Slug+" are intervals", "end")
	}
	own := v.givenOffset()
	if !check.Year(p, at, "timestamp") || v.End != nil && !check.Year(p, *v.End, "end") || !check.Offset(p, own, "timezone_offset") {
		return
	}
	t := in.clock.instant(healthlab.At(at.Time))
	in.checkFuture(p, t, "timestamp")
	check.Earliest(p, t, "timestamp")
	row.Time = t.UnixMicro()
	row.End = series.NoEnd
	if v.End != nil {
		end := in.clock.instant(healthlab.At(v.End.Time))
		row.End = end.UnixMicro()
		in.checkLength(p, v, t, end)
		in.checkFuture(p, end, "end")
	}
	row.Offset = int32(in.clock.offset(t.Time, own, nil))
}

func (s *Sample) givenOffset() *int {
	if s.TimezoneOffset != nil {
		return s.TimezoneOffset
	}
	return writtenOffset(&s.Timestamp, s.Start, s.End)
}

// checkLength reports an interval that is too long or too short for the resource. A limit of 24 hours accepts a local
// day of 25 hours, which the offsets of the sample or the zone of the user show.
func (in *intake) checkLength(p *healthlab.Problems, v *Sample, start, end healthlab.Time) {
	longest := in.resource.Longest
	wall := func(t healthlab.Time) time.Time {
		_, offset := t.In(in.clock.loc).Zone()
		return t.Add(time.Duration(offset) * time.Second)
	}
	length := end.Sub(start.Time)
	if from, to := v.givenOffset(), writtenOffset(v.End); from != nil && to != nil && !in.clock.floating && length <= longest+time.Hour {
		longest += max(0, time.Duration(*from-*to)*time.Second)
	}
	switch {
	case length > longest && wall(end).Sub(wall(start)) > longest:
		p.Add(check.CodeBounds, fmt.Sprintf("must be at most %g hours after start", longest.Hours()), "end")
	case length < 0:
		p.Add(check.CodeBounds, "must not be before start", "end")
	case length == 0 && in.resource.Spans:
		p.Add(check.CodeBounds, "must be after start", "end")
	}
}

// sampleFields reads the fields of a sample other than its time and its value.
func (in *intake) sampleFields(p *healthlab.Problems, v *Sample, row *series.Sample) {
	row.Type = deref(v.Type)
	if row.Type == "" && in.resource.TypeRequired {
		p.Add("missing", in.needsType(), "type")
	}
	for _, f := range [...]struct {
		name string
		from *string
		to   *string
	}{
		{"type", v.Type, &row.Type},
		{"sensor_location", v.SensorLocation, &row.Location},
		{"intensity", v.Intensity, &row.Intensity},
		{"delivery_mode", v.DeliveryMode, &row.DeliveryMode},
		{"delivery_form", v.DeliveryForm, &row.DeliveryForm},
		{"bolus_purpose", v.BolusPurpose, &row.BolusPurpose},
	} {
		if f.from == nil {
			continue
		}
		check.Text(p, *f.from, check.MaxName, f.name)
		if f.name != "type" && !slices.Contains(in.resource.Fields, f.name) {
			p.Add("not_allowed", in.notField(), f.name)
		}
		*f.to = *f.from
	}
	for i, tag := range v.Tags {
		check.Text(p, tag, check.MaxName, "tags", i)
		if strings.Contains(tag, tagSeparator) {
			p.Add("not_allowed", "must not contain a comma", "tags", i)
		}
	}
	if v.Tags != nil && !slices.Contains(in.resource.Fields, "tags") {
		p.Add("not_allowed", in.notField(), "tags")
	}
	row.Tags = strings.Join(v.Tags, tagSeparator)
}

func (in *intake) needsType() string {
	text := "must be set: samples of " + in.resource.Slug + " have a type"
	if known := in.resource.Types; len(known) > 0 {
		text += ", such as " + strings.Join(known, ", ")
	}
	return text
}

func (in *intake) notField() string {
	return "must be left out: samples of " + in.resource.Slug + " have no such field"
}

// sampleValue reads the value of a sample in the resource's unit.
func (in *intake) sampleValue(p *healthlab.Problems, v *Sample, row *series.Sample) {
	if v.Unit == "" {
		p.Add("missing", "must be set, such as "+in.resource.Unit, "unit")
		return
	}
	convert := func(n float64, name string) float64 {
		if !check.Finite(n) {
			check.NotFinite(p, "", name)
			return 0
		}
		out, ok := in.resource.Convert(n, v.Unit, row.Type)
		if !ok {
			p.Add("unit", in.resource.unitWords(row.Type), "unit")
			return 0
		}
		if !check.Finite(out) {
			check.NotFinite(p, in.resource.Unit, name)
			return 0
		}
		return out + 0 // adding zero turns minus zero into zero
	}
	switch in.resource.Value {
	case ValuePressure:
		samplePressure(p, v, row, convert)
		return
	case ValueText:
		switch {
		case v.Value == nil:
			p.Add("missing", "must be set: a text", "value")
		case !v.Value.IsText:
			p.Add("type", "must be a text for this resource", "value")
		default:
			check.Text(p, v.Value.Text, check.MaxNote, "value")
			row.Text = v.Value.Text
		}
		if v.Unit != in.resource.Unit {
			p.Add("unit", "must be "+in.resource.Unit, "unit")
		}
	case ValueNumber:
		switch {
		case v.Value == nil:
			p.Add("missing", "must be set: a number", "value")
		case v.Value.IsText:
			p.Add("type", "must be a number for this resource", "value")
		default:
			before := len(*p)
			row.Value = convert(v.Value.Number, "value")
			if b, ok := in.resource.Bounds(); ok && len(*p) == before {
				b.check(p, row.Value, "value")
			}
		}
	}
	if v.Systolic != nil || v.Diastolic != nil {
		p.Add("not_allowed", "must be left out, and so must diastolic: only samples of blood_pressure have them", "systolic")
	}
}

// sampleSource stores in row.Unit the unit and the numbers that the source sent, if the unit is not that of the
// resource.
func (in *intake) sampleSource(v *Sample, row *series.Sample) {
	switch {
	case in.resource.Value == ValuePressure:
		row.Unit = in.resource.sourceUnit(v.Unit, row.Type, []float64{*v.Systolic, *v.Diastolic}, []float64{row.Value, row.Value2})
	case in.resource.Value == ValueNumber:
		row.Unit = in.resource.sourceUnit(v.Unit, row.Type, []float64{v.Value.Number}, []float64{row.Value})
	}
}

// samplePressure reads the systolic and the diastolic number of a blood pressure. convert returns the number n of the
// field name in mmHg, and reports a number that cannot be converted.
func samplePressure(p *healthlab.Problems, v *Sample, row *series.Sample, convert func(n float64, name string) float64) {
	if v.Systolic == nil {
		p.Add("missing", "must be set: blood pressure has systolic and diastolic", "systolic")
	}
	if v.Diastolic == nil {
		p.Add("missing", "must be set: blood pressure has systolic and diastolic", "diastolic")
	}
	if v.Value != nil {
		p.Add("not_allowed", "must be left out: blood pressure has systolic and diastolic instead", "value")
	}
	if v.Systolic != nil && v.Diastolic != nil {
		before := len(*p)
		row.Value, row.Value2 = convert(*v.Systolic, "systolic"), convert(*v.Diastolic, "diastolic")
		if len(*p) == before {
			pressureBounds["systolic"].check(p, row.Value, "systolic")
			pressureBounds["diastolic"].check(p, row.Value2, "diastolic")
		}
	}
}

// Span returns the length of time that one chunk of the resource's series covers.
func (r *Resource) Span() series.Span {
	switch r.Rate {
	case Seconds:
		return series.PerTenSeconds
	case Minutes:
		return series.PerMinute
	default:
		return series.Sparse
	}
}

// eventKey returns the Key of sample events: user, resource, provider and source type, and the workout for a resource
// with KeyWorkout.
func (in *intake) eventKey() string {
	key := in.user.ID.String() + "/" + in.resource.Slug + "/" + in.Provider + "/" + string(in.Source.Type)
	if in.resource.Key == KeyWorkout {
		key += "/" + in.Source.WorkoutID.String()
	}
	return key
}

// changedSamples are the new and changed samples of one upload, over all series of the upload.
type changedSamples struct {
	blocks []*series.Block
	fresh  [][]bool
}

func (n *changedSamples) add(in *series.Block, o *series.Outcome) {
	if o.Idle() {
		return
	}
	block := new(series.Block)
	fresh := o.Diff(block, in)
	n.blocks, n.fresh = append(n.blocks, block), append(n.fresh, fresh)
}

func (n *changedSamples) len() int {
	total := 0
	for _, b := range n.blocks {
		total += b.Len()
	}
	return total
}

// sorted yields the samples ascending by timestamp, then type. The bool reports whether the sample is new. The samples
// of a large upload are decoded one at a time.
func (n *changedSamples) sorted() iter.Seq2[series.Sample, bool] {
	return func(yield func(series.Sample, bool) bool) {
		if len(n.blocks) == 1 {
			for j, s := range n.blocks[0].All() {
				if !yield(s, n.fresh[0][j]) {
					return
				}
			}
			return
		}
		for _, at := range n.sortedPositions() {
			if !yield(n.blocks[at.block].At(at.i), n.fresh[at.block][at.i]) {
				return
			}
		}
	}
}

// samplePlace is the block and the position of a changed sample, with the keys by which the samples are sorted.
type samplePlace struct {
	time     int64
	kind     string
	block, i int
}

// sortedPositions returns the positions of the samples, ascending by timestamp, then type.
func (n *changedSamples) sortedPositions() []samplePlace {
	out := make([]samplePlace, 0, n.len())
	for b, block := range n.blocks {
		for i, s := range block.All() {
			out = append(out, samplePlace{s.Time, s.Type, b, i})
		}
	}
	slices.SortStableFunc(out, func(a, b samplePlace) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.kind, b.kind))
	})
	return out
}

// sampleEvents returns the events about new and changed samples. An event has at most Options.BatchSamples samples and,
// unless one sample is larger, at most Options.BatchBytes bytes.
func (in *intake) sampleEvents(news *changedSamples) []healthlab.Event {
	var events []healthlab.Event
	head := in.batchHead()
	key := in.eventKey()
	body, count, outcome := head, 0, PutChanged
	flush := func() {
		data := append(slices.Clone(body), ']', '}')
		events = append(events, in.event(outcome, key, data))
		body, count, outcome = head, 0, PutChanged
	}
	var row []byte
	var sample series.Sample
	for changed, fresh := range news.sorted() {
		sample = changed
		row = in.resource.appendSample(row[:0], &sample)
		if count > 0 && (count == in.opts.BatchSamples || len(body)+len(row)+3 > in.opts.BatchBytes) {
			flush()
		}
		if count > 0 {
			body = append(body, ',')
		}
		body = append(body, row...)
		count++
		if fresh {
			outcome = PutNew
		}
	}
	flush()
	return events
}

// batchHead returns the start of a batch's JSON, up to the samples. Its capacity is its length, so that each
// append copies it.
func (in *intake) batchHead() []byte {
	b := append([]byte(nil), `{"user_id":`...)
	b = appendString(b, in.user.ID.String())
	b = append(b, `,"source_id":`...)
	b = appendNumber(b, float64(SourceNumber(in.Provider)))
	b = append(b, `,"source":`...)
	b = appendJSON(b, in.providers.source(in.Source))
	return slices.Clip(append(b, `,"data":[`...))
}
