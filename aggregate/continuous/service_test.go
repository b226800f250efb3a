package continuous_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/webhook"
)

var (
	team = healthlab.TeamID{UUID: uuid.UUID{1}}
	user = healthlab.UserID{UUID: uuid.UUID{2}}
)

func key(resource, provider string, t healthdata.SourceType, part string) healthdata.SeriesKey {
	return healthdata.SeriesKey{Resource: resource, Provider: provider, SourceType: t, Part: part}
}

// at is an instant in microseconds.
func at(s string) int64 {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

func ptr[T any](v T) *T { return &v }

// watch is continuous queries over a store in memory, with a clock of its own.
type watch struct {
	t      require.TestingT
	ctx    context.Context
	now    time.Time
	store  *memory.Store
	health *healthdata.Service
	ids    []uuid.UUID // that were given out
	*continuous.Service
}

func newWatch(ctx context.Context, t require.TestingT, opts *aggregate.Options) *watch {
	w := &watch{t: t, ctx: ctx, now: time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	w.store = memory.New(&memory.Options{Now: clock})
	providers, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	w.health, err = healthdata.New(w.store.Users(), w.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	o := aggregate.Options{}
	if opts != nil {
		o = *opts
	}
	o.Now = clock
	ask, err := aggregate.New(w.health, &o)
	require.NoError(t, err)
	w.Service, err = continuous.New(ask, w.store.Continuous(), w.store.ContinuousWork(), &continuous.Options{
		Now: clock,
		NewID: func() uuid.UUID {
			w.ids = append(w.ids, uuid.New())
			return w.ids[len(w.ids)-1]
		},
	})
	require.NoError(t, err)
	require.NoError(t, w.store.Users().Insert(ctx, healthdata.User{
		ID: user, Team: team, ClientUserID: "one", CreatedOn: healthlab.At(w.now),
		FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: healthlab.At(w.now)},
	}, 0))
	return w
}

// measure writes samples and says how long it is.
func (w *watch) measure(k healthdata.SeriesKey, samples ...series.Sample) {
	var b series.Builder
	for _, s := range samples {
		b.Add(s)
	}
	require.NoError(w.t, w.store.Data().MergeSamples(w.ctx, team, user, []healthdata.SampleBatch{{Key: k, Samples: b.Block(), Span: series.PerMinute}}, nil))
}

// work does everything that is due and returns how many tasks that were.
func (w *watch) work() (done int) {
	for {
		list, err := w.Claim(w.ctx, 3)
		require.NoError(w.t, err)
		if len(list) == 0 {
			return done
		}
		for _, task := range list {
			require.NoError(w.t, w.Do(w.ctx, task))
			done++
		}
	}
}

func (w *watch) create(slug string, q aggregate.Query) continuous.Query {
	c, err := w.Create(w.ctx, team, &continuous.Definition{Slug: slug, Title: "Steps (per day)", Query: q})
	require.NoError(w.t, err)
	return c
}

// table is the user's table as JSON.
func (w *watch) table(name string) string {
	f, err := w.Result(w.ctx, team, user, name)
	require.NoError(w.t, err)
	var b strings.Builder
	require.NoError(w.t, f.WriteJSON(&b))
	return b.String()
}

// changes are the messages that were written since the last call.
func (w *watch) changes() (out []webhook.Message) {
	for _, id := range w.ids {
		m, err := w.store.WebhookLog().Message(w.ctx, team, id)
		if err == nil {
			out = append(out, m)
		}
	}
	w.ids = nil
	return out
}

// dataOf is the payload of a message.
func dataOf(t require.TestingT, m webhook.Message) string {
	var body struct {
		Data json.RawMessage `json:"data"`
	}
	require.NoError(t, json.Unmarshal(m.Body, &body))
	return string(body.Data)
}

func stepsPerDay() aggregate.Query {
	return aggregate.Query{
		Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Sum.Of(aggregate.Samples("steps"))},
		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
	}
}

var stepsKey = key("steps", "acme_band", "watch", "")

func walked(when string, n float64) series.Sample {
	return series.Sample{Time: at(when), End: at(when) + 60e6, Value: n}
}

func TestQuery_isComputedUpdatedAndArchived(t *testing.T) {
	w := newWatch(t.Context(), t, nil)
	w.measure(stepsKey, walked("2026-03-01T08:00:00Z", 100), walked("2026-03-02T08:00:00Z", 200))
	q := w.create("steps-per-day", stepsPerDay())
	require.Equal(t, map[string]aggregate.Type{"index": "timestamp", "group_key.0": "timestamp", "sum.steps.value": "float64"}, q.Schema)
	require.Equal(t, []string{"steps"}, q.Resources)
	require.JSONEq(t, `{"table":{"index":[],"group_key.0":[],"sum.steps.value":[]}}`, w.table("steps-per-day"))

	// The data that was there before the query.
	require.Equal(t, 1, w.work())
	require.JSONEq(t, `{"table":{"index":["2026-03-01T00:00:00","2026-03-02T00:00:00"],
		"group_key.0":["2026-03-01T00:00:00","2026-03-02T00:00:00"],"sum.steps.value":[100,200]}}`, w.table(q.ID.String()))
	said := w.changes()
	require.Len(t, said, 1)
	require.Equal(t, continuous.EventResultTableChanged, said[0].Type)
	require.Equal(t, user, said[0].User)
	require.Equal(t, `{"query_id":"`+q.ID.String()+`","query_slug":"steps-per-day","data":`+
		`{"group_key.0":["2026-03-01T00:00:00","2026-03-02T00:00:00"],"sum.steps.value":[100,200]}}`, dataOf(t, said[0]))

	// A change makes a task, not before the gap has passed; two changes make one.
	w.now = w.now.Add(10 * time.Minute)
	w.measure(stepsKey, walked("2026-03-02T09:00:00Z", 50))
	w.measure(stepsKey, walked("2026-03-03T09:00:00Z", 7))
	require.Zero(t, w.work())
	w.now = w.now.Add(20 * time.Minute)
	require.Equal(t, 1, w.work())
	require.JSONEq(t, `{"table":{"index":["2026-03-01T00:00:00","2026-03-02T00:00:00","2026-03-03T00:00:00"],
		"group_key.0":["2026-03-01T00:00:00","2026-03-02T00:00:00","2026-03-03T00:00:00"],"sum.steps.value":[100,250,7]}}`, w.table("steps-per-day"))
	said = w.changes()
	require.Len(t, said, 1)
	require.Equal(t, int64(2), said[0].Seq)
	require.Contains(t, dataOf(t, said[0]), `"data":{"group_key.0":["2026-03-02T00:00:00","2026-03-03T00:00:00"],"sum.steps.value":[250,7]}}`)
	var change continuous.ResultTableChange
	require.NoError(t, json.Unmarshal([]byte(dataOf(t, said[0])), &change))
	require.Equal(t, "[250,7]", string(change.Data["sum.steps.value"]))
	require.NoError(t, json.Unmarshal([]byte("["+dataOf(t, said[0])+`,{"query_slug":"b"}]`), &change))
	require.Equal(t, "steps-per-day", change.QuerySlug)
	require.Equal(t, "b", change.Others[0].QuerySlug)
	require.Error(t, json.Unmarshal([]byte(`"x"`), &change))

	// What is sent again changes nothing, and schedules nothing.
	w.now = w.now.Add(time.Hour)
	w.measure(stepsKey, walked("2026-03-03T09:00:00Z", 7))
	require.Zero(t, w.work())
	// Other resources neither.
	w.measure(key("heartrate", "acme_band", "watch", ""), series.Sample{Time: at("2026-03-03T09:00:00Z"), Value: 60})
	require.Zero(t, w.work())

	page, err := w.History(t.Context(), "steps-per-day", continuous.HistoryQuery{Team: team, User: user})
	require.NoError(t, err)
	var got []string
	for _, e := range page.Entries {
		got = append(got, string(e.Status)+" "+e.ScheduledAt.Format("15:04"))
	}
	require.Equal(t, []string{"completed 12:30", "skipped 12:10", "completed 12:00"}, got)

	// Archived: nothing is made again.
	w.measure(stepsKey, walked("2026-03-04T09:00:00Z", 7))
	for range 2 {
		archived, err := w.Archive(t.Context(), team, q.ID)
		require.NoError(t, err)
		require.Equal(t, continuous.Archived, archived.Status)
	}
	require.Equal(t, 1, w.work())
	require.Contains(t, w.table(q.ID.String()), `[100,250,7]`)
	_, err = w.Result(t.Context(), team, user, "steps-per-day")
	require.ErrorIs(t, err, healthlab.NotFound)
	page, err = w.History(t.Context(), q.ID.String(), continuous.HistoryQuery{Team: team, User: user, Size: 1})
	require.NoError(t, err)
	require.Equal(t, continuous.TaskSkipped, page.Entries[0].Status)
	again := w.create("steps-per-day", stepsPerDay())
	require.NotEqual(t, q.ID, again.ID)
}

func TestCreate_eachInvalidDefinitionNamesItsField(t *testing.T) {
	w := newWatch(t.Context(), t, &aggregate.Options{Known: func(slug string) bool { return slug == "acme_band" }})
	const good = `"query":{"select":[{"group_key":"*"},{"func":"sum","arg":{"timeseries":"steps","field":"value"}}],
		"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"index":"timeseries"}}]}`
	rows := []struct{ name, body, want string }{
		{"empty", `{}`, "slug invalid_body, title invalid_body, query invalid_body"},
		{"slug", `{"slug":"a--b","title":"x",` + good + `}`, "slug invalid_body"},
		{"slug with underscore", `{"slug":"a_b","title":"x",` + good + `}`, "slug invalid_body"},
		{"long slug", `{"slug":"` + strings.Repeat("a", 129) + `","title":"x",` + good + `}`, "slug invalid_body"},
		{"title", `{"slug":"a","title":"x!",` + good + `}`, "title invalid_body"},
		{"long title", `{"slug":"a","title":"` + strings.Repeat("é", 51) + `",` + good + `}`, "title invalid_body"},
		{"unknown key", `{"slug":"a","title":"x","timeframe":{},` + good + `}`, "timeframe unknown_key"},
		{"gap", `{"slug":"a","title":"x",` + good + `,"scheduling_preferences":{"minimum_gap_duration_second":1799}}`,
			"scheduling_preferences.minimum_gap_duration_second invalid_body"},
		{"huge gap", `{"slug":"a","title":"x",` + good + `,"scheduling_preferences":{"minimum_gap_duration_second":9000000000000}}`,
			"scheduling_preferences.minimum_gap_duration_second invalid_body"},
		{"gap of another type", `{"slug":"a","title":"x",` + good + `,"scheduling_preferences":{"minimum_gap_duration_second":"1800"}}`,
			"scheduling_preferences.minimum_gap_duration_second invalid_body"},
		{"fhir", `{"slug":"a","title":"x",` + good + `,"export_preferences":{"fhir_observations":true}}`,
			"export_preferences.fhir_observations not_supported"},
		{"events", `{"slug":"a","title":"x",` + good + `,"export_preferences":{"data_events":{"enabled":1}}}`,
			"export_preferences.data_events.enabled invalid_body"},
		{"provider", `{"slug":"a","title":"x",` + good + `,"query_config":{"provider_priority_overrides":["acme_band","nobody"]}}`,
			"query_config.provider_priority_overrides.1 unknown_provider"},
		{"no truncation", `{"slug":"a","title":"x","query":{"select":[{"func":"sum","arg":{"timeseries":"steps","field":"value"}}]}}`,
			"query.group_by continuous_query_invalid"},
		{"key not selected", `{"slug":"a","title":"x","query":{"select":[{"func":"sum","arg":{"activity":"steps"}},{"group_key":0}],
			"group_by":[{"date_trunc":{"unit":"day"},"arg":{"placeholder":true}},{"source":"source_provider"}]}}`,
			"query.select continuous_query_invalid"},
		{"unknown column", `{"slug":"a","title":"x","query":{"select":[{"func":"sum","arg":{"activity":"step"}}]}}`,
			"query.select.0.arg.activity unknown_column"},
		{"where", `{"slug":"a","title":"x","query":{"select":[{"func":"sum","arg":{"activity":"steps"}}],"where":"steps >"}}`,
			"query.where where_syntax"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := w.DecodeDefinition([]byte(row.body), false)
			var invalid *healthlab.InvalidError
			require.ErrorAs(t, err, &invalid)
			var got []string
			for _, p := range invalid.Problems {
				var place []string
				for _, x := range p.Path {
					place = append(place, fmt.Sprint(x))
				}
				got = append(got, strings.Join(place, ".")+" "+p.Code)
			}
			require.Equal(t, row.want, strings.Join(got, ", "))
		})
	}
	n, err := w.DecodeDefinition([]byte(`{"slug":"a-1","title":"Schritte (Ü) & mehr_1.0","timeframe":{},`+good+`,"query_config":null,
		"scheduling_preferences":{"minimum_gap_duration_second":null},"export_preferences":{"data_events":{"enabled":false}}}`), true)
	require.NoError(t, err)
	require.True(t, n.Quiet)
	_, err = w.Create(t.Context(), team, &n)
	require.NoError(t, err)
	_, err = w.Create(t.Context(), team, &n)
	var rule *healthlab.RuleError
	require.ErrorAs(t, err, &rule)
	require.Equal(t, continuous.SlugTaken, rule.Type)
	_, err = w.Create(t.Context(), team, &continuous.Definition{})
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = w.Result(t.Context(), team, healthlab.UserID{UUID: uuid.New()}, "a-1")
	require.ErrorAs(t, err, &rule)
	require.Equal(t, continuous.UserNotFound, rule.Type)
	_, err = w.Update(t.Context(), team, continuous.QueryID{UUID: uuid.New()}, continuous.Patch{})
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = w.Update(t.Context(), team, continuous.QueryID{}, continuous.Patch{Title: ptr("!")})
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestQuery_withQuietSendsNoEvents(t *testing.T) {
	w := newWatch(t.Context(), t, nil)
	_, err := w.Create(t.Context(), team, &continuous.Definition{Slug: "quiet", Query: stepsPerDay(), Quiet: true})
	require.NoError(t, err)
	w.measure(stepsKey, walked("2026-03-01T08:00:00Z", 100))
	require.Equal(t, 1, w.work())
	require.Empty(t, w.changes())
	require.Contains(t, w.table("quiet"), "[100]")
}

func TestUpdate_changesTitleAndScheduling(t *testing.T) {
	w := newWatch(t.Context(), t, nil)
	q := w.create("steps", stepsPerDay())
	w.work()
	gap := 7200
	got, err := w.Update(t.Context(), team, q.ID, continuous.Patch{Title: ptr("New"), Scheduling: &continuous.Scheduling{MinimumGap: &gap}})
	require.NoError(t, err)
	require.Equal(t, "New", got.Title)
	require.Equal(t, 2*time.Hour, got.Gap())
	w.measure(stepsKey, walked("2026-03-01T08:00:00Z", 100))
	w.now = w.now.Add(119 * time.Minute)
	require.Zero(t, w.work())
	w.now = w.now.Add(time.Minute)
	require.Equal(t, 1, w.work())
	page, err := w.List(t.Context(), continuous.ListQuery{Team: team})
	require.NoError(t, err)
	require.Equal(t, []continuous.Query{got}, page.Queries)
}

// A query that fails for good announces it, and catches up on missed changes afterwards.
func TestQuery_permanentFailureSendsAnEventAndCatchesUpLater(t *testing.T) {
	w := newWatch(t.Context(), t, &aggregate.Options{Limits: aggregate.Limits{Rows: 3}})
	q := w.create("steps", stepsPerDay())
	for d := range 4 {
		w.measure(stepsKey, walked(fmt.Sprintf("2026-03-0%dT08:00:00Z", d+1), 100))
	}
	require.Equal(t, 1, w.work())
	entry := func() continuous.HistoryEntry {
		page, err := w.History(t.Context(), "steps", continuous.HistoryQuery{Team: team, User: user})
		require.NoError(t, err)
		return page.Entries[0]
	}
	require.Equal(t, continuous.TaskError, entry().Status)
	require.Equal(t, "too_many_rows", *entry().Details)
	require.NotNil(t, entry().EndedAt)
	require.Equal(t, q.ID, entry().Query)

	// A host with other limits, later.
	other, err := aggregate.New(w.health, nil)
	require.NoError(t, err)
	w.Service, err = continuous.New(other, w.store.Continuous(), w.store.ContinuousWork(), nil)
	require.NoError(t, err)
	w.now = w.now.Add(time.Hour)
	w.measure(stepsKey, walked("2026-03-04T09:00:00Z", 1))
	require.Equal(t, 1, w.work())
	require.Contains(t, w.table("steps"), "[100,100,100,101]")

	// A user who has gone.
	w.now = w.now.Add(time.Hour)
	w.measure(stepsKey, walked("2026-03-04T10:00:00Z", 1))
	_, err = w.store.Users().Update(t.Context(), team, user, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = w.now
		return nil, nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, w.work())
}

// A task whose process crashes at every attempt is given up.
func TestTask_thatCrashesAtEveryAttemptIsGivenUp(t *testing.T) {
	w := newWatch(t.Context(), t, nil)
	w.create("steps", stepsPerDay())
	for range 5 {
		list, err := w.Claim(t.Context(), 9)
		require.NoError(t, err)
		require.Len(t, list, 1)
		w.now = w.now.Add(time.Hour)
	}
	require.Equal(t, 1, w.work())
	page, err := w.History(t.Context(), "steps", continuous.HistoryQuery{Team: team, User: user})
	require.NoError(t, err)
	require.Len(t, page.Entries, 1)
	require.Equal(t, "poison", *page.Entries[0].Details)
}

// A change that is larger than a message is sent in several, which together give the table.
func TestChange_largerThanAMessageIsSentInParts(t *testing.T) {
	w := newWatch(t.Context(), t, nil)
	q := stepsPerDay()
	q.GroupBy[0] = aggregate.By(aggregate.Minutes(1))
	w.create("steps", q)
	var list []series.Sample
	start := at("2026-01-01T00:00:00Z")
	for i := range int64(40_000) {
		list = append(list, series.Sample{Time: start + i*60e6, End: start + (i+1)*60e6, Value: float64(i)})
	}
	w.measure(stepsKey, list...)
	require.Equal(t, 1, w.work())
	said := w.changes()
	require.Greater(t, len(said), 1)
	next := 0.0
	for _, m := range said {
		require.LessOrEqual(t, len(m.Body), webhook.MaxBody)
		var change continuous.ResultTableChange
		require.NoError(t, json.Unmarshal([]byte(dataOf(t, m)), &change))
		var at []string
		var values []float64
		require.NoError(t, json.Unmarshal(change.Data["group_key.0"], &at))
		require.NoError(t, json.Unmarshal(change.Data["sum.steps.value"], &values))
		require.Len(t, at, len(values))
		for _, v := range values {
			require.Equal(t, next, v)
			next++
		}
	}
	require.Equal(t, 40_000.0, next)
}

// After any changes in any order, a patched table equals the table of a new query, and each
// announced change leads from one table to the next.
func TestTable_incrementalUpdatesEqualARecomputation(t *testing.T) {
	keys := []healthdata.SeriesKey{
		stepsKey, key("steps", "acme_band", "phone", ""), key("steps", "northring", "ring", ""),
		key("heartrate", "acme_band", "watch", ""), key("heartrate", "northring", "ring", ""),
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWatch(context.Background(), t, nil)
		var made []continuous.Query
		for i := range rapid.IntRange(1, 3).Draw(t, "queries") {
			made = append(made, w.create(fmt.Sprintf("q%d", i), drawContinuous(t)))
		}
		base := at("2026-03-20T00:00:00Z")
		id := 0
		for range rapid.IntRange(1, 6).Draw(t, "writes") {
			if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
				id++
				w.sleep(id%5, base+int64(rapid.IntRange(0, 60).Draw(t, "night"))*86400e6, int64(rapid.IntRange(300, 600).Draw(t, "minutes")))
			} else {
				var list []series.Sample
				when := base + int64(rapid.IntRange(0, 80).Draw(t, "start"))*12*3600e6
				for range rapid.IntRange(1, 30).Draw(t, "samples") {
					when += int64(rapid.SampledFrom([]int{60, 600, 1800, 3600, 86400}).Draw(t, "step")) * 1e6
					s := series.Sample{Time: when, End: when + 60e6, Value: float64(rapid.IntRange(40, 120).Draw(t, "value"))}
					s.Offset = int32(rapid.SampledFrom([]int{0, 3600, -18000, 50400}).Draw(t, "offset"))
					list = append(list, s)
				}
				w.measure(rapid.SampledFrom(keys).Draw(t, "key"), list...)
			}
			if rapid.Bool().Draw(t, "work") {
				w.now = w.now.Add(time.Hour)
				w.work()
			}
		}
		w.now = w.now.Add(time.Hour)
		w.work()
		for _, q := range made {
			fresh := w.create(q.Slug+"-again", q.Query)
			w.work()
			require.Equal(t, w.table(fresh.ID.String()), w.table(q.ID.String()))
		}
	})
}

// drawContinuous draws a query that may be continuous.
func drawContinuous(t *rapid.T) aggregate.Query {
	period := rapid.SampledFrom([]aggregate.Period{
		aggregate.Hours(1), aggregate.Hours(5), aggregate.Days(1), aggregate.Days(3), aggregate.Weeks(1), aggregate.Months(1), aggregate.Years(1),
	}).Draw(t, "period")
	q := aggregate.Query{Select: []aggregate.Expr{aggregate.Keys()}, GroupBy: []aggregate.Expr{aggregate.By(period)}}
	fns := []aggregate.Func{aggregate.Sum, aggregate.Mean, aggregate.Median, aggregate.Newest, aggregate.Count, aggregate.StdDev}
	fn := func() aggregate.Func { return rapid.SampledFrom(fns).Draw(t, "func") }
	switch rapid.IntRange(0, 3).Draw(t, "table") {
	case 0:
		q.Select = append(q.Select, fn().Of(aggregate.Col("sleep", "stage_asleep_second")), aggregate.Newest.Of(aggregate.Macro{Name: "awakenings"}))
	case 1:
		q.Select = append(q.Select, aggregate.Max.Of(aggregate.Col("derived_readiness", "recovery_score")), aggregate.Newest.Of(aggregate.Col("derived_readiness", "chronotype")))
	default:
		resource := rapid.SampledFrom([]string{"steps", "heartrate"}).Draw(t, "resource")
		q.Select = append(q.Select, fn().Of(aggregate.Samples(resource)))
		if rapid.IntRange(0, 3).Draw(t, "extra") == 0 {
			q.Select = append(q.Select, aggregate.TimeWeightedMean.Of(aggregate.Samples(resource)))
		}
		switch rapid.IntRange(0, 3).Draw(t, "key") {
		case 0:
			q.GroupBy = append([]aggregate.Expr{aggregate.SourceColumn{Name: "source_provider"}}, q.GroupBy...)
		case 1:
			q.GroupBy = append(q.GroupBy, aggregate.ByPart(aggregate.HourOfDay), aggregate.SourceColumn{Name: "source_type"})
		}
	}
	if len(q.GroupBy) == 1 && rapid.IntRange(0, 3).Draw(t, "align") == 0 {
		q.Align = &aggregate.Align{Mode: rapid.SampledFrom([]aggregate.AlignMode{aggregate.CarryForward, aggregate.CarryNearest}).Draw(t, "mode")}
	}
	return q
}

// sleep stores the main sleep of a night, or changes one of an earlier call.
func (w *watch) sleep(n int, start, minutes int64) {
	begin := time.UnixMicro(start).UTC()
	id := uuid.NewSHA1(uuid.Nil, []byte{byte(n)})
	hr, hrv := 50+minutes%9, float64(40+minutes%17)
	s := &healthdata.Sleep{
		CalendarDate: healthlab.DateOf(begin), Type: healthdata.SleepLong, BedtimeStart: healthlab.At(begin), BedtimeStop: healthlab.At(begin.Add(time.Duration(minutes) * time.Minute)),
		Duration: minutes * 60, Total: new(minutes * 50), HRResting: &hr, AverageHRV: &hrv,
	}
	healthdata.HeadOf(s).ID = id
	doc, err := json.Marshal(s)
	require.NoError(w.t, err)
	require.NoError(w.t, w.store.Data().PutRecords(w.ctx, team, user, []healthdata.Record{{
		Resource: "sleep", ID: id, Provider: "acme_band", SourceType: "watch", Index: s.BedtimeStop.Time, Doc: doc, CreatedAt: w.now, UpdatedAt: w.now,
	}}, nil))
}

// What creates a continuous query is refused, or means the same when it is written again.
func FuzzDecodeContinuous(f *testing.F) {
	f.Add([]byte(`{"slug":"steps-by-day","title":"Steps (per day)","query":{"select":[{"group_key":"*"},{"func":"sum","arg":{"activity":"steps"}}],"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"index":"activity"}}]},"query_config":{"overlap_policy":"fill"},"scheduling_preferences":{"minimum_gap_duration_second":300},"export_preferences":{"data_events":{"enabled":false},"fhir_observations":false}}`))
	f.Add([]byte(`{"title":null,"scheduling_preferences":null}`))
	f.Add([]byte(`{"slug":"a","title":"a","query":{"select":[{"sleep":"efficiency"}]}}`))
	w := newWatch(f.Context(), f, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := w.DecodePatch(data, false); err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
		}
		n, err := w.DecodeDefinition(data, false)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		_, err = w.Preview(t.Context(), team, &n)
		require.NoError(t, err, "what is read can be asked")
		body := map[string]any{
			"slug": n.Slug, "title": n.Title, "query": n.Query, "query_config": n.Config,
			"export_preferences": map[string]any{"data_events": map[string]any{"enabled": !n.Quiet}},
		}
		if n.Scheduling.MinimumGap != nil {
			body["scheduling_preferences"] = map[string]any{"minimum_gap_duration_second": *n.Scheduling.MinimumGap}
		}
		text, err := json.Marshal(body)
		require.NoError(t, err)
		again, err := w.DecodeDefinition(text, false)
		require.NoError(t, err, string(text))
		require.Equal(t, n, again)
	})
}
