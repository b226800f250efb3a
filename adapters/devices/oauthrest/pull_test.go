package oauthrest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/oauthrest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func ask(resource string) linking.PullRequest {
	ann := "ann/7"
	vienna, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		panic(err)
	}
	return linking.PullRequest{
		Secret: []byte(`{"access_token":"access-1"}`), ExternalUserID: &ann, Resource: resource,
		From: noon.AddDate(0, 0, -3), To: noon, Zone: vienna,
	}
}

// all follows the pages to their end.
func all(t *testing.T, c *oauthrest.Connector, r linking.PullRequest) (items []linking.PullItem) {
	t.Helper()
	for range 100 {
		page, err := c.Pull(t.Context(), r)
		require.NoError(t, err)
		items = append(items, page.Items...)
		if r.Cursor = page.Next; r.Cursor == "" {
			return items
		}
	}
	t.Fatal("it never ends")
	return nil
}

// A cursor leads from page to page; items say whose they are and what recorded them.
func TestPull_followsCursors(t *testing.T) {
	f := newFjord(t)
	f.data = func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/v1/users/ann%2F7/heart", r.URL.EscapedPath())
		require.Equal(t, "Bearer access-1", r.Header.Get("Authorization"))
		require.Equal(t, "en", r.Header.Get("Accept-Language"))
		q := r.URL.Query()
		require.Equal(t, []string{"2026-03-01T12:00:00Z", "2026-03-04T12:00:00Z", "500"}, []string{q.Get("from"), q.Get("to"), q.Get("limit")})
		w.Header().Set("X-RateLimit-Remaining", "41")
		w.Header().Set("X-RateLimit-Reset", "90")
		switch q.Get("cursor") {
		case "":
			fmt.Fprint(w, `{"user":"ann/7","next_cursor":"b+c","samples":[
				{"time":"2026-03-04T08:00:00+01:00","bpm":61,"device":"ring"},
				{"time":"2026-03-04T07:05:00.25Z","bpm":"62.5","device":"strap"},
				{"time":"2026-03-04T081+0100","bpm":63,"device":"ring"},
				{"time":"2026-03-04T08:15-0330","bpm":64,"device":"ring"},
				{"time":"2026-03-04T08:20:00Z","bpm":null,"device":"ring"}]}`)
		case "b+c":
			fmt.Fprint(w, `{"user":"eve","next_cursor":null,"samples":[
				{"time":"2026-03-04T09:00:00Z","bpm":70,"device":"helmet"},{"time":"2026-03-04T09:05:00Z","bpm":"many","device":"helmet"}]}`)
		}
	}
	c := f.connector(nil)
	page, err := c.Pull(t.Context(), ask("heartrate"))
	require.NoError(t, err)
	require.Equal(t, []linking.RateLimit{{Scope: linking.RateApp, Remaining: 41, Reset: noon.Add(90 * time.Second)}}, page.RateLimits)

	got := all(t, c, ask("heartrate"))
	require.Len(t, got, 3)
	require.Equal(t, "ann/7", *got[0].Owner)
	require.Equal(t, healthdata.SourceRing, got[0].Source.Type)
	hour, west := 3600, -(3*3600 + 1800)
	require.Equal(t, []healthdata.Sample{
		{Timestamp: at("2026-03-04T07:00:00Z"), TimezoneOffset: &hour, Unit: "bpm", Value: healthdata.Number(61)},
		{Timestamp: at("2026-03-04T11:45:00Z"), TimezoneOffset: &west, Unit: "bpm", Value: healthdata.Number(64)},
	}, got[0].Samples)
	require.Equal(t, "timestamp", got[0].Unparsed[0].Problems[0].Path[0], "a time that nobody can read")
	require.Equal(t, healthdata.SourceChestStrap, got[1].Source.Type)
	require.Equal(t, []healthdata.Sample{{Timestamp: at("2026-03-04T07:05:00.25Z"), Unit: "bpm", Value: healthdata.Number(62.5)}}, got[1].Samples)
	require.Equal(t, "eve", *got[2].Owner, "whoever asked decides whether to keep it")
	require.Equal(t, healthdata.SourceUnknown, got[2].Source.Type)
	require.Len(t, got[2].Samples, 1)
	require.Equal(t, []any{"value"}, got[2].Unparsed[0].Problems[0].Path)
}

func at(s string) healthlab.Time {
	t, err := healthlab.ParseTime(s)
	if err != nil {
		panic(err)
	}
	return t
}

// Values that stand beside their times in another list, and a range in parts of a week.
func TestPull_readsParallelListsInRangesOfAWeek(t *testing.T) {
	f := newFjord(t)
	var asked []string
	f.data = func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("start")+" "+q.Get("end"))
		if len(asked) > 1 {
			w.WriteHeader(http.StatusNotFound) // nothing, says the configuration
			return
		}
		fmt.Fprint(w, `{"nights":[{"zone":"Europe/Vienna","spo2":{"times":[1772600400,1772600460],"values":[0.97,null]}},
			{"zone":"+05:30","spo2":{"times":[1772600520],"values":[0.96]}},{"zone":"Mars","spo2":{"times":[1],"values":[0.9]}},
			{"zone":"UTC","spo2":{"times":null,"values":[]}}]}`)
	}
	r := ask("blood_oxygen")
	r.From = noon.AddDate(0, 0, -20)
	got := all(t, f.connector(nil), r)
	unix := func(days int) string { return strconv.FormatInt(noon.AddDate(0, 0, days).Unix(), 10) }
	require.Equal(t, []string{unix(-7) + " " + unix(0), unix(-14) + " " + unix(-7), unix(-20) + " " + unix(-14)}, asked)
	require.Len(t, got, 1)
	vienna, india := 3600, 19800
	require.Equal(t, []healthdata.Sample{
		{Timestamp: at("2026-03-04T05:00:00Z"), TimezoneOffset: &vienna, Unit: "fraction", Value: healthdata.Number(0.97)},
		{Timestamp: at("2026-03-04T05:02:00Z"), TimezoneOffset: &india, Unit: "fraction", Value: healthdata.Number(0.96)},
	}, got[0].Samples)
	require.Len(t, got[0].Unparsed, 1)
}

// Links lead on, local clocks are read in the user's zone, units are the item's own.
func TestPull_followsLinkHeaders(t *testing.T) {
	f := newFjord(t)
	f.data = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") == "" {
			w.Header().Add("Link", `<https://elsewhere.example/x>; rel="prev", <?after=2>; title="next"; rel=next`)
			fmt.Fprint(w, `[{"day":"2026-03-03","clock":"07:00","amount":180,"unit":"pound"},{"day":"2026-03-03","clock":"07:01","amount":1,"unit":"stone"},
				{"day":"2026-03-03","clock":"07:02","amount":81,"unit":"kilogram","deleted":true}]`)
			return
		}
		fmt.Fprint(w, `[{"day":"2026-03-02","clock":"07:00:30","amount":82.1,"unit":"kilogram","deleted":false}]`)
	}
	got := all(t, f.connector(nil), ask("weight"))
	hour := 3600
	require.Equal(t, []healthdata.Sample{{Timestamp: at("2026-03-03T06:00:00Z"), TimezoneOffset: &hour, Unit: "lb", Value: healthdata.Number(180)}}, got[0].Samples)
	require.Equal(t, "not_mapped", got[0].Unparsed[0].Problems[0].Code)
	require.Equal(t, "must be one of the keys of map, or the configuration must set else; the keys are: kilogram, pound", got[0].Unparsed[0].Problems[0].Msg)
	require.Equal(t, at("2026-03-02T06:00:30Z"), got[1].Samples[0].Timestamp)
}

// Days are asked for in the user's zone, and numbered pages end with one that is not full.
func TestPull_numberedPagesEndWithOneThatIsNotFull(t *testing.T) {
	const day = `{"day":"2026-03-03","steps":8123.4,"kilometres":5.5,"energy":{"active_kj":1000},"resting":52,"zone":"Europe/Vienna"}`
	f := newFjord(t)
	var pages []string
	f.data = func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		require.Equal(t, []string{"2026-03-01", "2026-03-04", "50"}, []string{q.Get("first"), q.Get("last"), q.Get("per_page")})
		pages = append(pages, q.Get("page"))
		n := 50
		if q.Get("page") == "2" {
			n = 3
		}
		fmt.Fprintf(w, `{"days":[%s]}`, strings.TrimSuffix(strings.Repeat(day+",", n), ","))
	}
	got := all(t, f.connector(nil), ask("activity"))
	require.Equal(t, []string{"1", "2"}, pages)
	require.Len(t, got[0].Summaries, 50)
	a := got[1].Summaries[2].(*healthdata.Activity)
	require.JSONEq(t, day, string(a.Raw), "the provider's own words")
	require.Equal(t, healthlab.Date{Year: 2026, Month: 3, Day: 3}, a.CalendarDate)
	require.Equal(t, int64(8123), *a.Steps)
	require.InDelta(t, 5500, *a.Distance, 1e-9)
	require.InDelta(t, 239.0, *a.CaloriesActive, 0.01)
	require.InDelta(t, 52, *a.HeartRate.RestingBPM, 0)
	require.Equal(t, "Europe/Vienna", *a.TimeZone)
	require.Nil(t, a.FloorsClimbed)
}

// A page is full by the elements that the provider counts, however few readings are in them.
func TestPull_pageIsFullByTheNumberOfProviderElements(t *testing.T) {
	for kind, want := range map[string][]string{"page": {"0", "1", "2"}, "offset": {"0", "2", "4"}} {
		t.Run(kind, func(t *testing.T) {
			f := newFjord(t)
			var pages []string
			f.data = func(w http.ResponseWriter, r *http.Request) {
				pages = append(pages, r.URL.Query().Get("at"))
				night := func(reading string) string { return `{"zone":"UTC","spo2":{"times":[` + reading + `],"values":[0.9]}}` }
				switch len(pages) {
				case 1:
					fmt.Fprintf(w, `{"nights":[%s,%s]}`, night("1772600400"), night(""))
				case 2:
					fmt.Fprintf(w, `{"nights":[%s,%s]}`, night(""), night(""))
				default: // more readings than a page has nights
					fmt.Fprintf(w, `{"nights":[{"zone":"UTC","spo2":{"times":[1772600460,1772600520,1772600580],"values":[0.9,0.9,0.9]}}]}`)
				}
			}
			got := all(t, f.connector(func(c *oauthrest.Config) {
				c.Resources[1].Paging = oauthrest.Paging{Kind: kind, Param: "at", Size: 2}
			}), ask("blood_oxygen"))
			require.Equal(t, want, pages)
			require.Len(t, got, 2)
			require.Len(t, got[1].Samples, 3)
		})
	}
}

// A night without readings is skipped. A night of a shape that the configuration does not
// describe fails the pull.
func TestPull_skipsEmptyElementsAndFailsOnUnknownShapes(t *testing.T) {
	f := newFjord(t)
	c := f.connector(nil)
	for _, night := range []string{`{"zone":"UTC"}`, `{}`, `null`, `{"spo2":null}`, `{"spo2":{}}`, `{"spo2":{"times":null}}`, `{"spo2":{"times":[]}}`} {
		f.answers(200, `{"nights":[`+night+`,{"zone":"UTC","spo2":{"times":[1772600400],"values":[0.97]}}]}`)
		page, err := c.Pull(t.Context(), ask("blood_oxygen"))
		require.NoError(t, err, night)
		require.Len(t, page.Items, 1, night)
		require.Len(t, page.Items[0].Samples, 1, night)
	}
	for _, doc := range []string{`{}`, `{"hello":[]}`, `{"nights":{}}`, `{"nights":[7]}`, `{"nights":[{"spo2":7}]}`, `{"nights":[{"spo2":{"times":{}}}]}`} {
		f.answers(200, doc)
		_, err := c.Pull(t.Context(), ask("blood_oxygen"))
		require.ErrorIs(t, err, healthlab.Unavailable, doc)
	}
}

// A link may have several relations (RFC 8288 section 3.3).
func TestPull_followsLinksWithSeveralRelations(t *testing.T) {
	for link, requests := range map[string]int{
		`<?after=2>; rel="last next"`: 2, `<?after=2>; rel="next  last"`: 2, `<?after=2>; rel=NEXT`: 2, `<?after=2>; rel="NeXt alternate"`: 2,
		`<?after=2>; rel="last"`: 1, `<?after=2>; rel="next-archive"`: 1, `<?after=2>; rel=""`: 1, `<?after=2>; rev="next"`: 1,
	} {
		f := newFjord(t)
		f.data = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("after") == "" {
				w.Header().Add("Link", link)
			}
			fmt.Fprint(w, `[]`)
		}
		all(t, f.connector(nil), ask("weight"))
		require.Len(t, f.requests, requests, link)
	}
}

// days are the first and the last day of what a range of days asks for, request by request.
func (f *fjord) days(t *testing.T, from, to time.Time, zone *time.Location, most int, inclusive bool) (asked [][2]healthlab.Date) {
	t.Helper()
	f.data = func(w http.ResponseWriter, r *http.Request) {
		var bounds [2]healthlab.Date
		for i, name := range []string{"first", "last"} {
			d, err := healthlab.ParseDate(r.URL.Query().Get(name))
			require.NoError(t, err)
			bounds[i] = d
		}
		if !inclusive {
			bounds[1] = bounds[1].AddDays(-1)
		}
		asked = append(asked, bounds)
		fmt.Fprint(w, `{"days":[]}`)
	}
	r := ask("activity")
	r.From, r.To, r.Zone = from, to, zone
	all(t, f.connector(func(c *oauthrest.Config) {
		c.Resources[3].Range.MaxDays, c.Resources[3].Range.Inclusive = most, inclusive
	}), r)
	return asked
}

// A range of days is cut by days: as many as the provider takes, and no more.
func TestPull_cutsRangesOfDaysToTheProvidersMaximum(t *testing.T) {
	f := newFjord(t)
	date := func(month time.Month, day int) healthlab.Date {
		return healthlab.Date{Year: 2026, Month: month, Day: day}
	}
	vienna := ask("activity").Zone
	april := time.Date(2026, 4, 1, 10, 0, 0, 0, time.UTC)
	for _, inclusive := range []bool{true, false} {
		require.Equal(t, [][2]healthlab.Date{{date(3, 4), date(3, 4)}, {date(3, 3), date(3, 3)}, {date(3, 2), date(3, 2)}},
			f.days(t, noon.AddDate(0, 0, -2), noon, vienna, 1, inclusive))
		require.Equal(t, [][2]healthlab.Date{{date(3, 26), date(4, 1)}, {date(3, 20), date(3, 25)}},
			f.days(t, april.AddDate(0, 0, -12), april, vienna, 7, inclusive), "a week in which clocks change")
	}
	zones := []string{"Europe/Vienna", "America/Santiago", "Asia/Beirut", "Pacific/Apia", "UTC"} // two of which skip midnights
	rapid.Check(t, func(rt *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(rt, "zone"))
		require.NoError(t, err)
		to := noon.AddDate(0, 0, rapid.IntRange(0, 365).Draw(rt, "day")).Add(time.Duration(rapid.Int64Range(0, 86_400).Draw(rt, "second")) * time.Second)
		from := to.Add(-time.Duration(rapid.IntRange(1, 24*20).Draw(rt, "hours")) * time.Hour)
		most := rapid.IntRange(1, 9).Draw(rt, "days at a time")
		asked := f.days(t, from, to, zone, most, rapid.Bool().Draw(rt, "inclusive"))
		next := healthlab.DateOf(to.Add(-time.Microsecond).In(zone))
		for i, part := range asked {
			if part[1] != next || part[0].Before(part[1].AddDays(1-most)) || part[0].After(part[1]) {
				rt.Fatalf("part %d is from %v to %v, of %d days at most that end with %v", i, part[0], part[1], most, next)
			}
			next = part[0].AddDays(-1)
		}
		if asked[len(asked)-1][0] != healthlab.DateOf(from.In(zone)) {
			rt.Fatalf("it begins with %v", asked[len(asked)-1][0])
		}
	})
}

// A part of a range is no longer than the provider takes either when its end was rounded.
func TestPull_roundedRangesStayWithinTheProvidersMaximum(t *testing.T) {
	f := newFjord(t)
	var asked [][2]int64
	f.data = func(w http.ResponseWriter, r *http.Request) {
		from, err := strconv.ParseInt(r.URL.Query().Get("start"), 10, 64)
		require.NoError(t, err)
		to, err := strconv.ParseInt(r.URL.Query().Get("end"), 10, 64)
		require.NoError(t, err)
		asked = append(asked, [2]int64{from, to})
		fmt.Fprint(w, `{"nights":[]}`)
	}
	r := ask("blood_oxygen")
	r.From, r.To = noon.AddDate(0, 0, -9).Add(time.Millisecond), noon.Add(time.Millisecond)
	all(t, f.connector(nil), r)
	day := int64(86_400)
	end := noon.Unix() + 1
	require.Equal(t, [][2]int64{{end - 7*day, end}, {noon.Unix() - 9*day, end - 7*day}}, asked)
}

// The address of the next page comes from the answer, and stays at the provider.
func TestPull_followsOnlyNextURLsOfTheProvidersHost(t *testing.T) {
	f := newFjord(t)
	next := `"/v1/more?x=1"`
	f.data = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/more" {
			next = `""`
		}
		fmt.Fprintf(w, `{"links":{"next":%s},"sleeps":[{"id":"n-%d","begin":"2026-03-03T22:30:00+01:00","end":"2026-03-04T06:30:00+01:00","kind":"night",
			"minutes":{"light":240,"deep":90,"rem":80,"awake":20}},{"begin":"2026-03-03T22:30:00+01:00","end":"x"}]}`, next, len(f.requests))
	}
	c := f.connector(nil)
	got := all(t, c, ask("sleep"))
	require.Len(t, got, 2)
	s := got[0].Summaries[0].(*healthdata.Sleep)
	require.Equal(t, "n-1", healthdata.HeadOf(s).ExternalID)
	require.Equal(t, at("2026-03-04T05:30:00Z"), s.BedtimeStop)
	require.Equal(t, 3600, *s.TimezoneOffset)
	require.Equal(t, healthdata.SleepLong, s.Type)
	require.Equal(t, int64(90*60), *s.Deep)
	require.Nil(t, s.Score)
	codes := []string{}
	for _, p := range got[0].Unparsed[0].Problems {
		codes = append(codes, fmt.Sprint(p.Path, p.Code))
	}
	require.Equal(t, []string{"[bedtime_stop]instant", "[timezone_offset]offset", "[external_id]missing"}, codes)

	for _, elsewhere := range []string{`"http://elsewhere.example/v1/more"`, `"//elsewhere.example/"`} {
		next = elsewhere
		_, err := c.Pull(t.Context(), ask("sleep"))
		require.ErrorIs(t, err, healthlab.Invalid, "the token is for nobody else")
	}
}

// Endless pages are detected, whether the cursor repeats or always changes.
func TestPull_detectsEndlessPages(t *testing.T) {
	f := newFjord(t)
	n := 0
	f.data = func(w http.ResponseWriter, r *http.Request) {
		n++
		cursor := "same"
		if r.URL.Query().Get("grow") != "" {
			cursor = fmt.Sprint("page ", n)
		}
		fmt.Fprintf(w, `{"user":"ann/7","next_cursor":%q,"samples":[]}`, cursor)
	}
	follow := func(c *oauthrest.Connector) error {
		r := ask("heartrate")
		for range 50 {
			page, err := c.Pull(t.Context(), r)
			if err != nil {
				return err
			}
			require.NotEmpty(t, page.Next)
			r.Cursor = page.Next
		}
		return nil
	}
	require.ErrorIs(t, follow(f.connector(nil)), healthlab.Invalid)
	require.Equal(t, 2, n)
	require.ErrorIs(t, follow(f.connector(func(c *oauthrest.Config) {
		c.Resources[0].Query["grow"] = "1"
		c.Resources[0].Paging.MaxPages = 10
	})), healthlab.Invalid)
	require.Equal(t, 12, n)
}

// For each kind of answer without data: the error kind of the pull.
func TestPull_eachFailureHasItsErrorKind(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		header []string
		kind   error
		wait   time.Duration
		over   string
	}{
		{"not accepted", 401, `{"error":"MARK"}`, nil, healthlab.Unauthenticated, 0, ""},
		{"too many", 429, "MARK", []string{"Retry-After", "33"}, healthlab.Exhausted, 33 * time.Second, ""},
		{"too many, no hint", 429, "", nil, healthlab.Exhausted, 0, ""},
		{"busy", 503, "", []string{"Retry-After", noon.Add(time.Minute).Format(http.TimeFormat)}, healthlab.Unavailable, time.Minute, ""},
		{"broken", 500, "MARK", nil, healthlab.Unavailable, 0, ""},
		{"over, as the configuration says", 403, `{"error":"account_closed"}`, nil, healthlab.Forbidden, 0, healthdata.FailureUserNotFound},
		{"refused, who knows why", 403, `{"error":"MARK"}`, nil, healthlab.Unavailable, 0, ""},
		{"not granted", 403, ``, []string{"WWW-Authenticate", `Bearer error="insufficient_scope"`}, healthlab.Invalid, 0, ""},
		{"a bad request", 400, "MARK", nil, healthlab.Invalid, 0, ""},
		{"elsewhere", 302, "", []string{"Location", "https://elsewhere.example/MARK"}, healthlab.Unavailable, 0, ""},
		{"nonsense", 200, `{"samples":[{"time":MARK`, nil, healthlab.Unavailable, 0, ""},
		{"two documents", 200, `{"user":"ann/7","samples":[]} {"MARK":1}`, nil, healthlab.Unavailable, 0, ""},
		{"another shape", 200, `{"samples":{"MARK":1}}`, nil, healthlab.Unavailable, 0, ""},
		{"a list instead", 200, `[{"MARK":1}]`, nil, healthlab.Unavailable, 0, ""},
		{"nested without end", 200, strings.Repeat("[", 100_000), nil, healthlab.Unavailable, 0, ""},
		{"too much", 200, `{"samples":["` + strings.Repeat("MARK", 1<<20) + `"]}`, nil, healthlab.Unavailable, 0, ""},
		{"a cursor without end", 200, `{"samples":[],"next_cursor":"` + strings.Repeat("x", 10_000) + `"}`, nil, healthlab.Unavailable, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFjord(t)
			f.answers(tt.status, tt.body, tt.header...)
			page, err := f.connector(nil).Pull(t.Context(), ask("heartrate"))
			require.ErrorIs(t, err, tt.kind)
			require.Empty(t, page)
			require.NotContains(t, err.Error(), "MARK")
			var hint interface{ RetryAfter() time.Duration }
			if errors.As(err, &hint) {
				require.Equal(t, tt.wait, hint.RetryAfter())
			}
			var over *linking.GrantError
			require.Equal(t, tt.over != "", errors.As(err, &over))
			if over != nil {
				require.Equal(t, tt.over, over.Type)
			}
			require.Len(t, f.requests, 1)
		})
	}
}

// No data is no failure.
func TestPull_noDataIsNoFailure(t *testing.T) {
	for status, body := range map[int]string{200: `{"user":"ann/7","samples":[]}`, 204: "", 404: "MARK"} {
		f := newFjord(t)
		f.answers(status, body)
		page, err := f.connector(nil).Pull(t.Context(), ask("heartrate"))
		require.NoError(t, err)
		require.Empty(t, page.Items)
		require.Empty(t, page.Next)
	}
}

func TestPull_timeoutCancelAndLostConnectionReturnDistinctErrors(t *testing.T) {
	f := newFjord(t)
	f.data = func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, `{"user":`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	c := f.connector(nil)
	_, err := c.Pull(t.Context(), ask("heartrate"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = c.Pull(ctx, ask("heartrate"))
	require.ErrorIs(t, err, context.Canceled)
	f.server.CloseClientConnections()
	f.server.Close()
	_, err = c.Pull(t.Context(), ask("heartrate"))
	require.ErrorIs(t, err, healthlab.Unavailable)
}

// A pull with an invalid cursor, secret, account or resource fails before a request is sent.
func TestPull_invalidRequestFailsBeforeItIsSent(t *testing.T) {
	f := newFjord(t)
	f.answers(200, `{}`)
	c := f.connector(nil)
	for name, edit := range map[string]func(*linking.PullRequest){
		"cursor":      func(r *linking.PullRequest) { r.Cursor = "MARK" },
		"secret":      func(r *linking.PullRequest) { r.Secret = []byte("MARK") },
		"no account":  func(r *linking.PullRequest) { r.ExternalUserID = nil },
		"dots":        func(r *linking.PullRequest) { dots := ".."; r.ExternalUserID = &dots },
		"no such one": func(r *linking.PullRequest) { r.Resource = "glucose" },
	} {
		r := ask("heartrate")
		edit(&r)
		_, err := c.Pull(t.Context(), r)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "MARK")
	}
	require.Empty(t, f.requests)
}

// Several entries of a resource are asked one after the other.
func TestPull_requestsEachConfigEntryOfAResource(t *testing.T) {
	f := newFjord(t)
	f.answers(200, `{"user":"ann/7","samples":[{"time":"2026-03-04T08:00:00Z","bpm":60,"device":"ring"}]}`)
	c := f.connector(func(c *oauthrest.Config) {
		second := c.Resources[0]
		second.Path = "/users/{user_id}/spot"
		c.Resources = append(c.Resources, second)
	})
	require.Len(t, all(t, c, ask("heartrate")), 2)
	require.Equal(t, "/v1/users/ann/7/spot", f.requests[1].URL.Path)
}

// Printing a connector shows no secret.
func TestClient_printsNoSecret(t *testing.T) {
	client := oauthrest.Client{ID: "MARK", Secret: "MARK"}
	b, err := json.Marshal(fmt.Sprintf("%v %+v %#v", client, client, client))
	require.NoError(t, err)
	require.NotContains(t, string(b), "MARK")
}
