package lake_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/lake"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// The model of one source with several apps knows when everything arrived. Reads and the lake show of a
// timestamp what arrived last, events lead to the same, and queries count each minute, hour and session once.

// interval is a sample of the model, in minutes since the first day.
type interval struct {
	from, to int
	value    float64
	seq      int // when it arrived
}

// session is a night of the model.
type session struct {
	interval
	id string // of the source
}

type history struct {
	*exported
	user     healthlab.UserID
	ask      *aggregate.Service
	message  func(uuid.UUID) (body []byte, ok bool)
	ids      []uuid.UUID
	seq      int
	samples  map[string]map[string]map[int]interval // by resource, app and start
	nights   map[string]map[string]session          // by app and id
	uploads  []func()
	received map[string]map[int64]float64 // by resource: what events say
	told     map[string]bool              // nights, by our id
}

var firstDay = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func minute(n int) healthlab.Time {
	return healthlab.At(firstDay.Add(time.Duration(n) * time.Minute))
}

func newHistory(t require.TestingT) *history {
	h := &history{
		exported: &exported{t: t, ctx: context.Background(), now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), place: newPlace(), team: healthlab.TeamID{UUID: uuid.New()}},
		samples:  map[string]map[string]map[int]interval{"steps": {}, "heartrate": {}}, nights: map[string]map[string]session{},
		received: map[string]map[int64]float64{"steps": {}, "heartrate": {}}, told: map[string]bool{},
	}
	clock := func() time.Time { return h.now }
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	require.NoError(t, err)
	store := memory.New(&memory.Options{Now: clock})
	h.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox, Now: clock, Log: slog.New(slog.DiscardHandler),
		NewID: func() uuid.UUID {
			h.ids = append(h.ids, uuid.New())
			return h.ids[len(h.ids)-1]
		},
	})
	require.NoError(t, err)
	log := store.WebhookLog()
	h.message = func(id uuid.UUID) ([]byte, bool) {
		m, err := log.Message(h.ctx, h.team, id)
		return m.Body, err == nil
	}
	h.opts = lake.Options{Now: clock, Log: slog.New(slog.DiscardHandler), Workers: 1}
	h.ask, err = aggregate.New(h.health, nil)
	require.NoError(t, err)
	h.user = h.addUser()
	return h
}

func uploadOf(app string) healthdata.Upload {
	up := upload
	if app != "" {
		up.Source.AppID = &app
	}
	return up
}

// send uploads samples and keeps in the model which of them changed something.
func (h *history) send(resource, unit, app string, list []interval) {
	h.seq++
	h.now = h.now.Add(time.Second)
	of := h.samples[resource][app]
	if of == nil {
		of = map[int]interval{}
		h.samples[resource][app] = of
	}
	var in []healthdata.Sample
	for _, v := range list {
		at, end := minute(v.from), minute(v.to)
		s := healthdata.Sample{Timestamp: at, Unit: unit, Value: healthdata.Number(v.value)}
		if resource == "steps" {
			s.Start, s.End = &at, &end
		}
		in = append(in, s)
	}
	last := map[int]interval{}
	for _, v := range list {
		last[v.from] = v
	}
	for from, v := range last {
		if was, ok := of[from]; !ok || was.to != v.to || was.value != v.value {
			v.seq = h.seq
			of[from] = v
		}
	}
	_, err := h.health.IngestSamples(h.ctx, h.team, h.user, resource, uploadOf(app), in)
	require.NoError(h.t, err)
	h.follow()
}

// sleep uploads a night.
func (h *history) sleep(app string, n session) {
	h.seq++
	h.now = h.now.Add(time.Second)
	if h.nights[app] == nil {
		h.nights[app] = map[string]session{}
	}
	if was, ok := h.nights[app][n.id]; !ok || was.from != n.from || was.to != n.to {
		n.seq = h.seq
		h.nights[app][n.id] = n
	}
	item := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: n.id}, BedtimeStart: minute(n.from), BedtimeStop: minute(n.to), Type: healthdata.SleepLong, Duration: int64(n.to-n.from) * 60,
	}
	_, err := h.health.IngestSummaries(h.ctx, h.team, h.user, "sleep", uploadOf(app), []healthdata.Summary{item})
	require.NoError(h.t, err)
	h.follow()
}

// remove removes samples of an app, or of all if none is named.
func (h *history) remove(resource, app string, starts []int) {
	h.seq++
	h.now = h.now.Add(time.Second)
	var at []healthlab.Time
	for _, from := range starts {
		at = append(at, minute(from))
		for name, of := range h.samples[resource] {
			if app == "" || app == name {
				delete(of, from)
			}
		}
	}
	_, err := h.health.RemoveSamples(h.ctx, h.team, h.user, resource, uploadOf(app), "", at)
	require.NoError(h.t, err)
	h.follow()
}

func (h *history) wake(app, id string) {
	delete(h.nights[app], id)
	_, err := h.health.RemoveSummaries(h.ctx, h.team, h.user, "sleep", uploadOf(app), []string{id})
	require.NoError(h.t, err)
	h.follow()
}

// follow does what a receiver of events does.
func (h *history) follow() {
	for _, id := range h.ids {
		body, ok := h.message(id)
		if !ok {
			continue // an id of something else
		}
		var e struct {
			EventType string `json:"event_type"`
			Data      struct {
				ID   string
				Data []struct {
					Timestamp healthlab.Time
					Value     float64
				}
			}
		}
		require.NoError(h.t, json.Unmarshal(body, &e))
		switch e.EventType {
		case "daily.data.steps.created", "daily.data.heartrate.created":
			resource := e.EventType[len("daily.data.") : len(e.EventType)-len(".created")]
			for _, s := range e.Data.Data {
				h.received[resource][s.Timestamp.UnixMicro()] = s.Value
			}
		case "daily.data.steps.deleted", "daily.data.heartrate.deleted":
			resource := e.EventType[len("daily.data.") : len(e.EventType)-len(".deleted")]
			for _, s := range e.Data.Data {
				require.Contains(h.t, h.received[resource], s.Timestamp.UnixMicro(), "what is withdrawn was announced")
				delete(h.received[resource], s.Timestamp.UnixMicro())
			}
		case "daily.data.sleep.created":
			h.told[e.Data.ID] = true
		case "daily.data.sleep.deleted":
			require.True(h.t, h.told[e.Data.ID], "what is withdrawn was announced")
			delete(h.told, e.Data.ID)
		}
	}
	h.ids = h.ids[:0]
}

// latest returns what readers see of a resource.
func (h *history) latest(resource string) map[int64]float64 {
	seen, out := map[int]interval{}, map[int64]float64{}
	for _, of := range h.samples[resource] {
		for from, v := range of {
			if was, ok := seen[from]; !ok || v.seq > was.seq {
				seen[from], out[minute(from).UnixMicro()] = v, v.value
			}
		}
	}
	return out
}

const dayMinutes = 24 * 60

// origins returns the apps with samples of a day, the best first.
func (h *history) origins(resource string, day int) []string {
	type told struct{ covered, seq int }
	of := map[string]told{}
	for app, samples := range h.samples[resource] {
		covered := map[int]bool{} // minutes, or for points hours
		for _, from := range slices.Sorted(maps.Keys(samples)) {
			v := samples[from]
			was, present := of[app]
			if resource == "heartrate" {
				if v.from/dayMinutes == day && !covered[v.from/60] {
					covered[v.from/60] = true
					was.covered++
				}
			} else {
				for at := v.from; at < v.to; at++ {
					if !covered[at] && v.from/dayMinutes == day {
						was.covered++
					}
					covered[at] = true
				}
			}
			if v.from/dayMinutes == day {
				was.seq, present = max(was.seq, v.seq), true
			}
			if present {
				of[app] = was
			}
		}
	}
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b].covered, of[a].covered), cmp.Compare(of[b].seq, of[a].seq))
	})
}

// sum returns the sum of a resource: each minute of steps is that of the best sample, and each hour of heart
// rates that of the best app.
func (h *history) sum(resource string) (total float64) {
	orders := map[int][]string{}
	order := func(day int) []string {
		if _, ok := orders[day]; !ok {
			orders[day] = h.origins(resource, day)
		}
		return orders[day]
	}
	type owner struct {
		interval
		place int
		app   string
	}
	better := func(a, b owner) bool {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.app, b.app), cmp.Compare(a.to-a.from, b.to-b.from), cmp.Compare(b.seq, a.seq), cmp.Compare(b.from, a.from)) < 0
	}
	owners := map[int]owner{}
	each := func(visit func(o owner)) {
		for app, samples := range h.samples[resource] {
			for _, v := range samples {
				visit(owner{v, slices.Index(order(v.from/dayMinutes), app), app})
			}
		}
	}
	if resource == "heartrate" {
		each(func(o owner) {
			if was, ok := owners[o.from/60]; !ok || o.place < was.place {
				owners[o.from/60] = o
			}
		})
		each(func(o owner) {
			if owners[o.from/60].app == o.app {
				total += o.value
			}
		})
		return total
	}
	each(func(o owner) {
		for at := o.from; at < o.to; at++ {
			if was, ok := owners[at]; !ok || better(o, was) {
				owners[at] = o
			}
		}
	})
	for _, o := range owners {
		total += o.value / float64(o.to-o.from)
	}
	return total
}

// counted returns the sessions that others do not cover: the longest first, then the latest.
func counted(list []session) (out []session) {
	slices.SortFunc(list, func(a, b session) int {
		return cmp.Or(cmp.Compare(b.to-b.from, a.to-a.from), cmp.Compare(b.seq, a.seq))
	})
	for _, n := range list {
		if !slices.ContainsFunc(out, func(o session) bool {
			return 2*(min(o.to, n.to)-max(o.from, n.from)) > min(o.to-o.from, n.to-n.from)
		}) {
			out = append(out, n)
		}
	}
	return out
}

// query asks for a sum over all days.
func (h *history) query(value aggregate.Expr, by ...aggregate.Expr) (total float64) {
	req := aggregate.Ask(aggregate.Last(10, healthlab.DateOf(firstDay.AddDate(0, 0, 6))), aggregate.Query{Select: []aggregate.Expr{aggregate.Sum.Of(value)}, GroupBy: by})
	got, err := h.ask.Query(h.ctx, h.team, h.user, req)
	require.NoError(h.t, err)
	c, err := got.Frames[0].Column("sum")
	require.NoError(h.t, err)
	for i := range c.Len() {
		switch v := c.Value(i).(type) {
		case int64:
			total += float64(v)
		case float64:
			total += v
		}
	}
	return total
}

// check compares reads, events, queries and the lake with the model.
func (h *history) check() {
	want := map[string][]row{}
	for resource := range h.samples {
		seen := h.latest(resource)
		require.Equal(h.t, seen, h.received[resource], "events of %s", resource)
		for at, v := range seen {
			want[resource] = append(want[resource], row{Time: at, Value: v})
		}
		var read []row
		page, err := h.health.Samples(h.ctx, h.team, h.user, healthdata.SampleQuery{Resource: resource})
		require.NoError(h.t, err)
		for _, g := range page.Groups {
			for s := range g.All() {
				read = append(read, row{Time: s.Timestamp.UnixMicro(), Value: s.Value.Number})
			}
		}
		order := func(a, b row) int { return cmp.Compare(a.Time, b.Time) }
		slices.SortFunc(want[resource], order)
		slices.SortFunc(read, order)
		require.Equal(h.t, want[resource], read, "reads of %s", resource)
		for _, by := range [][]aggregate.Expr{nil, {aggregate.By(aggregate.Hours(1))}, {aggregate.By(aggregate.Days(1))}} {
			require.InDelta(h.t, h.sum(resource), h.query(aggregate.Samples(resource), by...), 1e-6, "sum of %s", resource)
		}
	}
	var all []session
	listed := 0
	for _, of := range h.nights {
		list := slices.Collect(maps.Values(of))
		all, listed = append(all, list...), listed+len(counted(list))
	}
	nights, err := h.health.Summaries(h.ctx, h.team, h.user, healthdata.SummaryQuery{Resource: "sleep"})
	require.NoError(h.t, err)
	require.Len(h.t, nights, listed)
	require.Len(h.t, h.told, listed)
	for _, n := range nights {
		require.True(h.t, h.told[healthdata.HeadOf(n).ID.String()])
	}
	asleep := 0
	for _, n := range counted(all) {
		asleep += 60 * (n.to - n.from)
	}
	require.InDelta(h.t, asleep, h.query(aggregate.Col("sleep", "duration_second")), 1e-6, "sleep")

	m, err := h.export()
	require.NoError(h.t, err)
	got := h.rows(m)
	require.Len(h.t, got["sleep"], listed, "nights in the lake")
	for resource := range h.samples {
		for i := range got[resource] {
			got[resource][i].User = ""
		}
		slices.SortFunc(got[resource], func(a, b row) int { return cmp.Compare(a.Time, b.Time) })
		require.Equal(h.t, want[resource], got[resource], "%s in the lake", resource)
	}
}

// Random histories of one source with three apps, 300 in a plain go test and 100,000 under make prove: reads,
// events, queries and the lake agree with the model.
func TestLake_readsQueriesAndExportsChooseOriginsLikeAModel(t *testing.T) {
	for range prove.Sequential(10, 10, 1_000) {
		rapid.Check(t, func(t *rapid.T) {
			h := newHistory(t)
			app := rapid.SampledFrom([]string{"", "com.acme.a", "com.acme.b"})
			for range rapid.IntRange(1, 8).Draw(t, "uploads") {
				from := app.Draw(t, "app")
				var do func()
				switch kind := rapid.SampledFrom([]string{"steps", "steps", "heartrate", "sleep", "again", "remove", "wake"}).Draw(t, "kind"); kind {
				case "steps":
					list := drawIntervals(t, 30, []int{5, 10, 30, 30, 60, 90})
					do = func() { h.send("steps", "count", from, list) }
				case "heartrate":
					list := drawIntervals(t, 7, []int{0})
					do = func() { h.send("heartrate", "bpm", from, list) }
				case "sleep":
					n := session{id: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id")}
					n.from = 60 * rapid.IntRange(0, 40).Draw(t, "bedtime")
					n.to = n.from + 60*rapid.IntRange(1, 9).Draw(t, "hours")
					do = func() { h.sleep(from, n) }
				case "remove":
					resource := rapid.SampledFrom([]string{"steps", "heartrate"}).Draw(t, "resource")
					var starts []int
					for _, of := range h.samples[resource] {
						starts = append(starts, slices.Collect(maps.Keys(of))...)
					}
					if slices.Sort(starts); len(starts) > 0 {
						starts = rapid.SliceOfN(rapid.SampledFrom(starts), 1, 3).Draw(t, "starts")
					}
					h.remove(resource, from, starts)
					continue
				case "wake":
					h.wake(from, rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id"))
					continue
				default:
					if len(h.uploads) == 0 {
						continue
					}
					do = rapid.SampledFrom(h.uploads).Draw(t, "upload")
				}
				h.uploads = append(h.uploads, do)
				do()
			}
			h.check()
		})
	}
}

// Two intervals of one upload overlap over a midnight, and another app has told of both days: the later one
// holds for the time that they share.
func TestLake_originWithTheLatestIntervalIsChosenAcrossMidnight(t *testing.T) {
	h := newHistory(t)
	of := func(spans ...[3]int) (out []interval) {
		for _, s := range spans {
			out = append(out, interval{from: dayMinutes + s[0], to: dayMinutes + s[1], value: float64(s[2])})
		}
		return out
	}
	h.send("steps", "count", "", of([3]int{-120, -115, 40}, [3]int{-90, -85, 40}, [3]int{120, 180, 40}))
	h.send("steps", "count", "com.acme.a", of([3]int{-90, -85, 40}, [3]int{-89, -84, 40}))
	h.send("steps", "count", "com.acme.a", of([3]int{-30, -25, 40}, [3]int{120, 180, 40}, [3]int{105, 110, 83}, [3]int{0, 10, 41}, [3]int{-29, 1, 109}))
	h.send("steps", "count", "", of([3]int{-15, 15, 43}, [3]int{90, 120, 120}, [3]int{0, 30, 106}))
	h.check()
}

// drawIntervals draws the samples of one upload, in a few hours around a midnight.
func drawIntervals(t *rapid.T, step int, lengths []int) (out []interval) {
	for range rapid.IntRange(1, 5).Draw(t, "samples") {
		from := dayMinutes - 120 + step*rapid.IntRange(0, 240/step).Draw(t, "from") + rapid.SampledFrom([]int{0, 0, 1, 15}).Draw(t, "shift")
		out = append(out, interval{from: from, to: from + rapid.SampledFrom(lengths).Draw(t, "length"), value: float64(rapid.IntRange(40, 120).Draw(t, "value"))})
	}
	return out
}

// A day stays with the app that told it last as long as one sample of that upload is left.
func TestLake_originOfADayStaysChosenAfterASampleIsRemoved(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.send("heartrate", "bpm", "com.acme.a", []interval{{from: 1404, to: 1404, value: 40}})
	h.send("heartrate", "bpm", "", []interval{{from: 1376, to: 1376, value: 79}, {from: 1404, to: 1404, value: 40}})
	h.send("heartrate", "bpm", "com.acme.a", []interval{{from: 1341, to: 1341, value: 89}, {from: 1342, to: 1342, value: 52}})
	h.remove("heartrate", "com.acme.a", []int{1342})
	h.check()
}
