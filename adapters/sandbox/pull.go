package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Demo is a [linking.Puller] that returns invented data of [Provider] up to now. It fails only if ctx has ended, or if
// the resource or the cursor is unknown. The zero value is ready to use. Safe for concurrent use.
type Demo struct {
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Pull returns the data of up to ten days of a resource.
func (d Demo) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	now := d.Now
	if now == nil {
		now = time.Now
	}
	if ctx.Err() != nil {
		return linking.PullPage{}, ctx.Err()
	}
	return inventPage(Provider{}, r, now(), sameZone)
}

// streamSlug is the resource of workouts with their recorded streams.
const streamSlug = "workout_stream"

func summaryOf(resource string) string {
	if resource == streamSlug {
		return "workouts"
	}
	return resource
}

// Pulls reports whether resource is workout_stream. See [linking.ExtendedPuller].
func (*Connector) Pulls(resource string) bool { return resource == streamSlug }

// Pull returns the data of up to ten days of a resource, or the failure that the behaviour in the person's name causes.
func (c *Connector) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	if ctx.Err() != nil {
		return linking.PullPage{}, ctx.Err()
	}
	t, times, err := c.checkAccess(r.Secret, r.User, r.Resource)
	if err != nil {
		return linking.PullPage{}, err
	}
	if times%2 == 0 { // every second request succeeds
		switch t.behaviour {
		case BehaviourFlaky:
			return linking.PullPage{}, errDown
		case BehaviourHanging:
			<-ctx.Done()
			return linking.PullPage{}, ctx.Err()
		case BehaviourLimited:
			return linking.PullPage{}, &linking.RateLimitError{Scope: linking.RateUser, Wait: 2 * time.Second}
		case BehaviourCrowded:
			return linking.PullPage{}, &linking.RateLimitError{Scope: linking.RateUser}
		case BehaviourGarbled:
			return linking.PullPage{}, errGarbled
		}
	}
	now, zones := c.now(), sameZone
	switch t.behaviour {
	case BehaviourLate:
		now = now.Add(-lateness)
	case BehaviourTravelling:
		zones = otherZones
	case BehaviourHourly:
		r = extendToDays(r)
	}
	page, err := inventPage(Provider{Slug: c.provider}, r, now, zones)
	for i := range page.Items {
		for _, s := range page.Items[i].Summaries {
			healthdata.HeadOf(s).Raw = payload(summaryOf(r.Resource), s)
		}
	}
	switch {
	case err != nil:
	case t.behaviour == BehaviourHourly:
		hourly(&page, r.Resource)
	case t.behaviour == BehaviourResent:
		halve(&page, now.Add(-time.Hour))
	case t.behaviour == BehaviourStrange && len(page.Items) > 0:
		page.Items = append(page.Items, invalidItems(&page.Items[0], now)...)
	}
	return page, err
}

// extendToDays extends the range of manual entries to whole days, so that no hour is split.
func extendToDays(r linking.PullRequest) linking.PullRequest {
	if x := healthdata.ResourceBySlug(r.Resource); x == nil || !x.Diary() {
		return r
	}
	home := r.Zone
	home = cmp.Or(home, time.UTC)
	r.From = healthlab.DateOf(r.From.In(home)).At(home).UTC()
	if last := healthlab.DateOf(r.To.In(home)).At(home); last.Before(r.To) {
		r.To = healthlab.DateOf(r.To.In(home)).AddDays(1).At(home).UTC()
	}
	return r
}

// hourly replaces the times of manual entries by the local start of the hour, and combines the entries of each hour.
func hourly(page *linking.PullPage, resource string) {
	if x := healthdata.ResourceBySlug(resource); x == nil || !x.Diary() {
		return
	}
	for i := range page.Items {
		var entries []healthdata.Sample
		for _, s := range page.Items[i].Samples {
			at := s.Timestamp.Time
			if s.TimezoneOffset != nil {
				at = at.Add(time.Duration(*s.TimezoneOffset) * time.Second)
			}
			begin := healthlab.At(s.Timestamp.Add(-at.Sub(at.Truncate(time.Hour))))
			s.Timestamp, s.Start, s.End = begin, &begin, &begin
			more := s
			if s.Value.IsText {
				more.Value = healthdata.Text("and then nothing")
			} else {
				s.Value, more.Value = healthdata.Number(s.Value.Number/2), healthdata.Number(s.Value.Number/2)
			}
			entries = append(entries, s, more)
		}
		page.Items[i].Samples = healthdata.CombineEntries(resource, entries)
	}
}

// payload returns what is stored as the provider's payload of a summary.
func payload(resource string, s healthdata.Summary) json.RawMessage {
	record := map[string]any{}
	doc, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(doc, &record)
	}
	if err != nil {
		return nil
	}
	for _, name := range []string{"id", "user_id", "source", "created_at", "updated_at"} { // the provider has none of these
		delete(record, name)
	}
	out, _ := json.Marshal(map[string]any{"kind": resource, "record": record})
	return out
}

// lateness is the delay of data of people with [BehaviourLate].
const lateness = 36 * time.Hour

// pullDays is the number of days of data in one page of a pull.
const pullDays = 10

func sameZone(home *time.Location, _ healthlab.Date) *time.Location { return home }

// otherZones returns the time zone of a person with [BehaviourTravelling] on a day; home if it cannot be loaded.
func otherZones(home *time.Location, day healthlab.Date) *time.Location {
	names := []string{"Asia/Tokyo", "Europe/Berlin", "America/New_York", "Pacific/Auckland"}
	loc, err := time.LoadLocation(names[day.At(time.UTC).YearDay()%len(names)])
	if err != nil {
		return home
	}
	return loc
}

// inventPage returns a page of data recorded up to now. zones returns the person's time zone on a day.
func inventPage(p Provider, r linking.PullRequest, now time.Time, zones func(*time.Location, healthlab.Date) *time.Location) (linking.PullPage, error) {
	var page linking.PullPage
	at := 0
	if r.Cursor != "" {
		var err error
		if at, err = strconv.Atoi(r.Cursor); err != nil || at < 0 {
			return page, healthlab.Invalid
		}
	}
	resource := healthdata.ResourceBySlug(r.Resource)
	if resource == nil {
		return page, healthlab.Invalid
	}
	home := r.Zone
	home = cmp.Or(home, time.UTC)
	// A day more on both sides, because the time zone of a person may differ from home.
	first, last := healthlab.DateOf(r.From.In(home)).AddDays(-1), healthlab.DateOf(r.To.In(home)).AddDays(1)
	day := first.AddDays(at)
	for range pullDays {
		if day.After(last) {
			return page, nil
		}
		loc := zones(home, day)
		var item linking.PullItem
		if resource.Class == healthdata.ClassTimeseries {
			source, samples := p.Samples(r.User, r.Resource, day, loc)
			item = linking.PullItem{Source: source, Samples: within(samples, r.From, r.To, now)}
			if source.WorkoutID != nil { // it is the provider's id of the workout
				item.Workout, item.Source.WorkoutID = ptr(source.WorkoutID.String()), nil
			}
		} else if !day.Before(first.AddDays(1)) && !day.After(last.AddDays(-1)) {
			source, all := p.Summaries(r.User, summaryOf(r.Resource), day, loc)
			item = linking.PullItem{Source: source}
			for _, s := range all {
				if hasEnded(s, day, loc, now) {
					item.Summaries = append(item.Summaries, s)
				}
			}
		}
		if r.Resource == streamSlug && len(item.Summaries) > 0 {
			item.Stream = p.WorkoutStream(r.User, day, loc)
		}
		item.Device = p.Device(r.User, item.Source.Type)
		if item.TimeZone = loc.String(); len(item.Samples)+len(item.Summaries) > 0 {
			page.Items = append(page.Items, item)
		}
		day, at = day.AddDays(1), at+1
	}
	if !day.After(last) {
		page.Next = strconv.Itoa(at)
	}
	return page, nil
}

// within returns the samples at or after from and before to, without those after now.
func within(samples []healthdata.Sample, from, to, now time.Time) (out []healthdata.Sample) {
	for _, s := range samples {
		if s.Timestamp.Before(from) || !s.Timestamp.Before(to) || s.Timestamp.After(now) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// hasEnded reports whether the period of a summary has ended. day is the day to which the summary belongs.
func hasEnded(s healthdata.Summary, day healthlab.Date, loc *time.Location, now time.Time) bool {
	end := day.AddDays(1).At(loc)
	switch s := s.(type) {
	case *healthdata.Sleep:
		end = s.BedtimeStop.Time
	case *healthdata.SleepCycle:
		end = s.SessionEnd.Time
	case *healthdata.Body:
		end = s.MeasuredAt.Time
	case *healthdata.Meal:
		end = s.Timestamp.Time
	}
	return !end.After(now)
}

// halve halves the values of samples after since, as if the day's data were incomplete.
func halve(page *linking.PullPage, since time.Time) {
	for i := range page.Items {
		samples := page.Items[i].Samples
		for k := range samples {
			if samples[k].Timestamp.After(since) && samples[k].Value != nil {
				samples[k].Value = healthdata.Number(samples[k].Value.Number / 2)
			}
		}
	}
}

// twoVersions returns an item with two versions of the item's first sleep session; nil if it has none.
func twoVersions(sound *linking.PullItem) []linking.PullItem {
	for _, s := range sound.Summaries {
		night, ok := s.(*healthdata.Sleep)
		if !ok {
			continue
		}
		one, two, score := *night, *night, int64(1)
		one.ExternalID, two.ExternalID = "twice", "twice"
		one.Score, two.Score = nil, &score
		return []linking.PullItem{{Source: sound.Source, TimeZone: sound.TimeZone, Summaries: []healthdata.Summary{&one, &two}}}
	}
	return nil
}

// invalidItems returns items that must be refused, made from a valid item: another owner, an unknown unit, a future
// time; or two versions of one sleep session if it has no samples.
func invalidItems(sound *linking.PullItem, now time.Time) []linking.PullItem {
	if len(sound.Samples) == 0 {
		return twoVersions(sound)
	}
	other, unit, tomorrow := *sound, sound.Samples[0], sound.Samples[0]
	somebody := "somebody else"
	other.Owner, other.Samples = &somebody, sound.Samples[:1]
	unit.Unit = "furlong"
	tomorrow.Timestamp = healthlab.At(now.AddDate(0, 0, 3))
	tomorrow.Start, tomorrow.End = &tomorrow.Timestamp, &tomorrow.Timestamp
	odd := *sound
	odd.Samples = []healthdata.Sample{unit, tomorrow}
	return []linking.PullItem{other, odd}
}
