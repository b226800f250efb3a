package console_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/console"
	"github.com/healthlab-dev/healthlab/webhook"
)

const person = "11111111-0000-4000-8000-000000000001"

// fakeAPI answers the operations of one user with a night and two sources of glucose.
func fakeAPI() http.Handler {
	mux := http.NewServeMux()
	reply := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	}
	mux.HandleFunc("GET /v1/org/org/team/team/management_key", func(w http.ResponseWriter, r *http.Request) {
		role, ok := map[string]string{"manager": "admin", "looker": "viewer", "reader": "reviewer"}[r.Header.Get("X-Management-Key")]
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = fmt.Fprintf(w, `{"name":"n","role":%q}`, role)
	})
	reply("GET /v2/introspect/historical_pull", `{"data":[{"user_id":"`+person+`","provider":{"a":{"pulled":{
		"sleep":{"status":"retrying","error_details":"provider unavailable","timeline":{"scheduled_at":"2026-01-01T08:00:00Z"}},
		"steps":{"status":"success","timeline":{"scheduled_at":"2026-01-01T08:00:00Z"}}}}}}],"next_cursor":"more"}`)
	reply("GET /v3/unmatched_result", `{"data":[],"total":2}`)
	reply("GET /v1/org/org/team/team/sandbox/lab_report_job", `{"data":[{"id":"j","status":"pending_review"}],"next_cursor":null}`)
	result := func(day, rest string) string {
		return `{"name":"Ferritin, serum","analyte":"Ferritin","unit":"ug/L","comparator":null,"bound":null,"interpretation":"normal","reference_range":"30-300",
			"range_low":30,"range_high":300,"collected_date":"` + day + `","source":"order","source_id":"o1",` + rest + `}`
	}
	reply("GET /v2/user/"+person+"/lab_result", `{"next_cursor":null,"data":[`+strings.Join([]string{
		result("2026-01-02", `"value":45,"reported_value":"45"`),
		result("2026-01-01", `"value":20,"reported_value":"0.02","reported_unit":"mg/L","interpretation":"abnormal","range_low":25`),
		result("2025-12-31", `"value":null,"comparator":"<","bound":8,"reported_value":"<8"`),
		`{"name":"Colour","analyte":null,"value":null,"unit":null,"bound":null,"comparator":null,"reported_value":"clear","interpretation":"unknown","collected_date":"2026-01-02","source":"report","source_id":"j"}`,
	}, ",")+`]}`)
	reply("GET /v2/user/metrics", `{"number_of_users":3}`)
	reply("GET /v3/orders", `{"orders":[{"id":"o2"},{"id":"o1"}],"total":2,"page":1,"size":1}`)
	reply("GET /v2/user/"+person, `{"user_id":"`+person+`","client_user_id":"<b>p1</b>","connected_sources":[]}`)
	reply("GET /v2/summary/workouts/"+person, `{"workouts":[{"id":"w1","title":"Run","calendar_date":"2026-01-01","distance":5000.4,"average_hr":140,
		"time_start":"2026-01-01T17:00:00Z","time_end":"2026-01-01T17:30:00Z","sport":{"name":"Running"},"source":{"provider":"a"}}]}`)
	reply("GET /v2/timeseries/workouts/w1/stream", `{"time":[1767286800,1767286860,1767286920],"heartrate":[120,null,150],"altitude":[],"velocity_smooth":[],"power":[],
		"lat":[0,0.01,0.02],"lng":[0,0.01,0]}`)
	reply("GET /v3/orders/count", `{"total":4,"by_status":{"ordered":3,"completed":1}}`)
	reply("GET /openapi.json", `{"paths":{"/aggregate/v1/user/{user_id}/query":{"post":{"responses":{"200":{"content":{"application/x-parquet":{}}}}}}}}`)
	reply("GET /v2/user/providers/"+person, `{"providers":[{"name":"A","slug":"a","status":"error","created_on":"2026-01-01T08:00:00Z","error_details":{"error_message":"token refused"}}]}`)
	reply("GET /v2/introspect/resources", `{"data":[{"provider":{"a":{"glucose":{"newest_data":"2026-01-01T09:00:00Z","last_attempt":{"timestamp":"2026-01-02T07:00:00Z","status":"failure"},
		"stored_by_day":[{"date":"2026-01-01","new":40},{"date":"2026-01-02","new":2}]},"steps":{"newest_data":"2026-01-01T08:00:00Z","stored_by_day":[{"date":"2026-01-02","new":5}]},
		"sleep":{"stored_by_day":[{"date":"2026-01-02","new":1}]}}}}]}`)
	reply("GET /aggregate/v1/schema", `{"tables":[],"timeseries":[{"name":"glucose","columns":[{"name":"value","type":"float64","unit":"mmol/L"}]},
		{"name":"steps","additive":true,"columns":[{"name":"value","type":"float64","unit":"count"},{"name":"duration","type":"float64","unit":"s"}]},
		{"name":"weight","columns":[{"name":"value","type":"float64","unit":"kg"},{"name":"duration","type":"float64","unit":"s"}]},
		{"name":"note","columns":[{"name":"value","type":"string","unit":""}]}],"value_macros":[],"functions":["mean"],
		"bands":[{"name":"in_range","low_mg_dl":70,"high_mg_dl":180,"low_mmol_l":3.9,"high_mmol_l":10}]}`)
	reply("POST /aggregate/v1/user/"+person+"/query", `{"results":[{"table":{"index":["2026-01-01T09:00:00","2026-01-01T10:00:00","2026-01-02T08:00:00"],
		"group_key.1":["a","a","b"],"group_key.2":["cgm","cgm","manual"],"mean.glucose.value":[5,7,6],"min.glucose.value":[4,7,6],"max.glucose.value":[6,7,6],"mean.heartrate.value":[50,51,52],
		"sum.steps.value":[10,20,30],"newest.timestamp":["2026-01-02T08:00:00"],
		"gmi.glucose.value":[1.23]}}]}`)
	mux.HandleFunc("GET /v2/user/"+person+"/glucose_profile", func(w http.ResponseWriter, r *http.Request) {
		clock := []string{}
		for i := range 96 {
			values := `"p5":null,"p25":null,"p50":null,"p75":null,"p95":null`
			if i >= 36 && i < 40 {
				values = `"p5":4.1,"p25":4.9,"p50":5.3,"p75":6.2,"p95":8.7`
			}
			clock = append(clock, fmt.Sprintf(`{"minute":%d,%s}`, 15*i, values))
		}
		days := map[string]int{"end_date=2026-01-02&days=2": 2, "end_date=2026-01-02&days=90": 40}["end_date="+r.FormValue("end_date")+"&days="+r.FormValue("days")]
		_, _ = fmt.Fprintf(w, `{"days_with_readings":%d,"mean":5.5,"gmi_percent":6.12,"cv_percent":null,"bands":[
			{"name":"very_low","low":null,"high":2.9,"percent":1.5},{"name":"low","low":3,"high":3.8,"percent":7},{"name":"in_range","low":3.9,"high":10,"percent":81.5},
			{"name":"high","low":10.1,"high":13.9,"percent":10},{"name":"very_high","low":14,"high":null,"percent":0}],"clock":[%s]}`, days, strings.Join(clock, ","))
	})
	reply("GET /v2/summary/sleep/"+person, `{"sleep":[{"id":"n","bedtime_start":"2026-01-01T22:00:00Z","bedtime_stop":"2026-01-02T08:30:00Z","calendar_date":"2026-01-02","total":25200}]}`)
	reply("GET /v2/summary/sleep_cycle/"+person, `{"sleep_cycle":[{"sleep_id":"n","session_start":"2026-01-01T22:00:00Z",
		"stage_start_offset_second":[0,3600,25200],"stage_end_offset_second":[3600,25200,28800],"stage_type":[4,1,3]}]}`)
	reply("GET /v1/org/org/team/team/sandbox/webhook", `{"data":[{"id":"w","url":"https://receiver.example","disabled":false,"disabled_reason":null,"failing_since":"2026-01-01T07:00:00Z"}],"next_cursor":null}`)
	reply("GET /v1/org/org/team/team/sandbox/webhook/w/attempt", `{"data":[{"at":"2026-01-01T08:00:00Z","message_id":"m1","event_type":"daily.data.sleep.created",
		"attempt":2,"status_code":503,"duration_ms":12,"state":"waiting","reason":null,"trigger":"event","outcome":"refused","response_head":"HTTP/1.1 503","response":"<busy>"}],"next_cursor":"more"}`)
	reply("GET /v3/unmatched_result/r", `{"id":"r","status":"open","decision_code":"no_match","allowed_actions":["accept","reject"],"lab":{"id":1,"name":"Northlab"},
		"patient":{"first_name":"Ann","last_name":null,"dob":null},"markers":[{"name":"Ferritin"}],"created_at":"2026-01-01T08:00:00Z",
		"candidate_groups":[{"user_id":"u","candidates":[{"order_id":"o","confidence_level":"low","last_status":null,"reasons":["name"]}]}]}`)
	loop := `{"id":"c","order_id":"o","user_id":"u","status":"escalated","result":{"code":"2345-7","name":"Glucose","value":"31","unit":"mg/dL","reference_range":"70-99"},
		"escalation":[{"to":"on_call","due_at":"2026-01-01T08:15:00Z","passed_at":"2026-01-01T08:15:01Z"}],"next_step_at":null,"opened_at":"2026-01-01T08:00:00Z",
		"history":[{"at":"2026-01-01T08:00:00Z","event":"announced"},{"at":"2026-01-01T08:15:01Z","event":"unacknowledged","step":1,"to":"on_call"}]}`
	reply("GET /v3/critical_result", `{"data":[`+loop+`],"next_cursor":"more","total":7}`)
	reply("GET /v3/critical_result/c", loop)
	mux.HandleFunc("POST /v3/critical_result/c/acknowledge", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.TrimSpace(string(body)) != `{"acknowledged_by":"Dr. Ada Roe","read_back":{"value":"31"}}` {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, loop)
	})
	return mux
}

func newConsole() http.Handler { return consoleOf(fakeAPI()) }

func consoleOf(api http.Handler) http.Handler {
	h, err := console.New(console.Config{API: api, Org: "org", Team: "team", Environment: "sandbox", TeamKey: "team key"})
	if err != nil {
		panic(err)
	}
	return h
}

func Example() {
	w := httptest.NewRecorder()
	newConsole().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/users", nil))
	fmt.Println(w.Code, w.Header().Get("Location"))
	// Output: 303 /console/sign-in
}

func TestSignIn_setsAStrictHTTPOnlyCookie(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/console/sign-in", strings.NewReader("key=manager"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	newConsole().ServeHTTP(w, r)
	require.Equal(t, http.StatusSeeOther, w.Code)
	c := w.Result().Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, "/console", c.Path)
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
}

func signedInPage(t *testing.T, path string) string {
	t.Helper()
	return postForm(t, path, nil)
}

func signedInPageOf(t *testing.T, api http.Handler, path string) string {
	t.Helper()
	return postFormTo(t, consoleOf(api), path, nil)
}

func postForm(t *testing.T, path string, form url.Values) string {
	t.Helper()
	return postFormTo(t, newConsole(), path, form)
}

// postFormTo returns the page of a console that a form leads to; without fields, the page itself.
func postFormTo(t *testing.T, h http.Handler, path string, form url.Values) string {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := http.Client{Jar: jar}
	in, err := client.PostForm(server.URL+"/console/sign-in", url.Values{"key": {"manager"}})
	require.NoError(t, err)
	require.NoError(t, in.Body.Close())
	w, err := client.Get(server.URL + "/console" + path)
	require.NoError(t, err)
	if form != nil {
		b, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		form.Set("csrf", regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(string(b))[1])
		w, err = client.PostForm(server.URL+"/console"+path, form)
		require.NoError(t, err)
	}
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, w.StatusCode, string(b))
	return string(b)
}

func TestEventsPage_showsEndpointsMessagesAndAttempts(t *testing.T) {
	page := signedInPage(t, "/events")
	for _, want := range []string{"https://receiver.example", "m1", "503", "12 ms", "waiting", "Outcome: refused", "HTTP/1.1 503", "&lt;busy&gt;", `action="/console/events/w/messages/m1"`, "next_cursor=more"} {
		require.Contains(t, page, want)
	}
}

func TestReviewPage_showsTheResultAndItsDecisions(t *testing.T) {
	page := signedInPage(t, "/reviews/r")
	for _, want := range []string{"Northlab", "Ferritin", "Ann", `href="/console/orders/o"`, `<option value="accept">accept</option>`, `<option value="reject">reject</option>`, "Accept for this order"} {
		require.Contains(t, page, want)
	}
}

func TestCriticalPages_listAndShowACriticalResult(t *testing.T) {
	page := signedInPage(t, "/critical")
	for _, want := range []string{"7 critical results", `href="/console/critical/c">Glucose`, "escalated", `href="/console/orders/o"`, "2026-01-01 08:00 UTC", "next_cursor=more"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, ">31<", "the value is on the page of the result alone")
	page = postForm(t, "/critical/c", url.Values{"acknowledged_by": {"Dr. Ada Roe"}, "value": {"31"}})
	for _, want := range []string{"2345-7", "<strong>31</strong> mg/dL", "reference range 70-99", `name="acknowledged_by"`, "unacknowledged", "step 1: on call", "passed <time"} {
		require.Contains(t, page, want)
	}
}

func TestPersonPage_showsChartSourcesAndEscapedTexts(t *testing.T) {
	page := signedInPage(t, "/users/"+person+"?resource=glucose&from=2026-01-01&to=2026-01-02&by=hour")
	for _, want := range []string{
		"a · cgm", "b · manual", "2026-01-01 09:00 to 2026-01-02 09:00: glucose (mmol/L): 3 values between 4 and 7",
		"Source used by the merge in 2 stretches", "error: token refused", "1 failing", "2026-01-01 09:00 UTC", `<td>5 (4 to 6)</td>`, `class="area s0"`,
		`aria-current="true">glucose</a>`, `<h2 id="data" class="first">glucose</h2>`, `?from=2025-12-30&amp;resource=glucose&amp;to=2025-12-31">Earlier`,
		"Ambulatory glucose profile: 2 days over one day", "25th to 75th percentile", "81.5%</strong> in target, 3.9 to 10.0 mmol/L", "6.1%</strong> GMI", `class="band1"`,
		"<dt>very low, up to 2.9 mmol/L</dt><dd>1.5%</dd>", "<dt>very high, from 14.0 mmol/L</dt><dd>0.0%</dd>", "<td>5.3</td>", "of the 2 days that end",
	} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "<option value=\"note\"", "texts have no chart")
	require.NotContains(t, page, "<b>p1</b>", "texts are escaped")
}

// Where a team has more users than are counted, Home says how many are.
func TestHomePage_notesHowManyUsersAreCountedIfNotAll(t *testing.T) {
	const note = "count the first"
	require.NotContains(t, signedInPage(t, "/"), note)
	api := http.NewServeMux()
	api.Handle("/", fakeAPI())
	api.HandleFunc("GET /v2/introspect/resources", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"provider":{}},{"provider":{}}],"next_cursor":"more"}`)
	})
	require.Contains(t, signedInPageOf(t, api, "/"), "Samples a day and people by newest data count the first 2 of 3 users.")
}

// The profile of a long range is that of its last 90 days; a range without readings has none.
func TestPersonPage_glucoseProfileCoversTheLast90Days(t *testing.T) {
	require.Contains(t, signedInPage(t, "/users/"+person+"?resource=glucose&from=2025-01-01&to=2026-01-02"), "Ambulatory glucose profile: 40 days over one day")
	require.NotContains(t, signedInPage(t, "/users/"+person+"?resource=glucose&from=2025-01-01&to=2026-01-03"), "Ambulatory glucose profile")
}

func TestWorkoutsPage_showsTheWorkoutAndItsHeartRate(t *testing.T) {
	page := signedInPage(t, "/users/"+person+"/workouts?from=2026-01-01&to=2026-01-02")
	for _, want := range []string{"Run, 2026-01-01", "5000 m", "140 bpm", "heart rate (bpm): 2 values between 120 and 150",
		`d="M67.5 225.0L172.5 120.0L67.5 15.0"`} {
		require.Contains(t, page, want)
	}
}

// The checker takes the signature of Standard Webhooks, and shows no secret.
func TestSignaturePage_checksASignatureWithoutShowingTheSecret(t *testing.T) {
	secret, err := webhook.GenerateSecret(rand.Reader)
	require.NoError(t, err)
	at := time.Unix(1767286800, 0)
	form := url.Values{"id": {"msg_1"}, "timestamp": {"1767286800"}, "secret": {secret.Text()}, "body": {`{"a":1}`},
		"signature": {webhook.Sign(secret, "msg_1", at, []byte(`{"a":1}`))}}
	page := postForm(t, "/signature", form)
	require.Contains(t, page, "The signature is of this message and secret.")
	require.NotContains(t, page, secret.Text())
	form.Set("body", `{"a":2}`)
	require.Contains(t, postForm(t, "/signature", form), "The signature is not of this message and secret")
}

// The commands and the program of a query send its text unchanged.
func TestQueryPage_codeSamplesSendTheQueryUnchanged(t *testing.T) {
	const query = `{"note": "it's  $HOME \\ \"x\""}`
	page := postForm(t, "/query", url.Values{"user": {person}, "text": {query}})
	snippets := regexp.MustCompile(`(?s)<pre tabindex="0">(.*?)</pre>`).FindAllStringSubmatch(page, -1)
	require.Len(t, snippets, 3)
	for _, m := range snippets[:2] {
		command := html.UnescapeString(m[1])
		sent, err := exec.CommandContext(t.Context(), "sh", "-c", "curl() { for last; do :; done; printf %s \"$last\"; }\n"+command).Output()
		require.NoError(t, err)
		require.Equal(t, query, string(sent))
	}
	program := html.UnescapeString(snippets[2][1])
	body, err := strconv.Unquote(regexp.MustCompile(`NewReader\((.*)\)\n`).FindStringSubmatch(program)[1])
	require.NoError(t, err)
	require.JSONEq(t, query, body)
}

func TestSleepPage_showsStagesAndHeartRate(t *testing.T) {
	page := signedInPage(t, "/users/"+person+"/sleep?from=2026-01-01&to=2026-01-02")
	for _, want := range []string{"Night to 2026-01-02", "7:00\u00a0h", "heart rate (bpm): 1 value between 52 and 52; sleep stages: 3 stages", "REM", `class="st0"`, `class="st2"`, `class="st3"`} {
		require.Contains(t, page, want)
	}
}

// Home shows what waits, each with a link, and the rate of a log that is longer than a page.
func TestHomePage_linksToPendingReviewsPullsAndOrders(t *testing.T) {
	page := signedInPage(t, "/")
	for _, want := range []string{
		`href="/console/reports"><strong>1</strong> reports in review`, `href="/console/reviews"><strong>2</strong> results to match`,
		`href="/console/sources"><strong>1&#43;</strong> pulls behind`,
		`<a href="/console/orders?status=ordered">ordered</a><svg class="share" aria-hidden="true"><rect class="s0" width="100.0%" height="100%"/></svg><strong>3</strong>`,
		`<span>longer ago</span><svg class="share" aria-hidden="true"><rect class="s0" width="50.0%"`, "samples stored a day (UTC): 14 values between 0 and 0",
		`class="bad">1</strong> endpoints failing`, "failing since", `<td class="bad">1&#43;</td>`,
	} {
		require.Contains(t, page, want)
	}
	page = signedInPage(t, "/sources")
	for _, want := range []string{"retrying: provider unavailable", `href="/console/users/` + person + `"`, "Histories of the next 500 users", "<td>glucose</td>"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "steps")
}

// A marker's results are a trend in its reference range, beside a wearable series.
func TestLabsPage_showsTheTrendInItsReferenceRange(t *testing.T) {
	page := signedInPage(t, "/users/"+person+"/labs?resource=glucose&from=2025-12-31&to=2026-01-02")
	for _, want := range []string{
		"Ferritin (ug/L): 3 values between 8 and 45", `class="range"`, "glucose by day (mmol/L): 3 values",
		"<td>&lt; 8 ug/L</td>", "<td>20, abnormal</td>", "<td>0.02 mg/L</td>", `href="/console/orders/o1">order`, `href="/console/reports/j">report`, "<td>clear </td>",
	} {
		require.Contains(t, page, want)
	}
	ranges := regexp.MustCompile(`<rect class="range" x="([0-9.]+)%" y="([0-9.]+)" width="([0-9.]+)%"`).FindAllStringSubmatch(page, -1)
	require.Len(t, ranges, 3, "each result has its own range")
	require.Equal(t, "0.00", ranges[0][1])
	require.NotEqual(t, ranges[0][2], "0")
}

// Without a range a page opens on the day of the newest data on the person's clock, with the kinds
// that the person has.
func TestPersonPage_opensOnTheDayOfTheNewestData(t *testing.T) {
	page := signedInPage(t, "/users/"+person)
	for _, want := range []string{`<h2 id="data" class="first">glucose</h2>`, `value="2025-12-27"`, `value="2026-01-02"`, `<a href="?resource=steps">steps</a>`} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "resource=weight", "there is none")
}

// Values that add up are bars of sums, whatever has a duration; others are lines of means.
func TestPersonPage_chartsSumsAsBarsAndMeansAsLines(t *testing.T) {
	page := signedInPage(t, "/users/"+person+"?resource=steps&from=2026-01-01&to=2026-01-02&by=hour")
	require.Contains(t, page, `<rect class="s0" x="`)
	require.Contains(t, page, "steps (count): 3 values between 0 and 30")
	require.Contains(t, page, "Sums by hour")
	page = signedInPage(t, "/users/"+person+"?resource=weight&from=2026-01-01&to=2026-01-02&by=hour")
	require.Contains(t, page, "No weight in this range", "the answer has no mean of it")
}

// A role sees its own pages alone; every call of a team's operation carries the key of the session.
func TestRoles_openOnlyTheirOwnPages(t *testing.T) {
	var beside []string
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Service-Api-Key") != "" {
			beside = append(beside, r.Header.Get("X-Management-Key"))
			if r.Header.Get("X-Management-Key") != "manager" {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"detail":{"error_message":"the operation needs admin"}}`)
				return
			}
		}
		fakeAPI().ServeHTTP(w, r)
	})
	h, err := console.New(console.Config{API: api, Org: "org", Team: "team", Environment: "sandbox", TeamKey: "team key"})
	require.NoError(t, err)
	for key, sections := range map[string][]string{
		"manager": {"users", "orders", "reviews", "critical", "reports", "events", "query", "sources", "team", "sandbox"}, "looker": {"events", "team"}, "reader": {"reports"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/console/sign-in", strings.NewReader("key="+key))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		cookie := w.Result().Cookies()[0]
		get := func(path string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "/console"+path, nil)
			r.AddCookie(cookie)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		home := get("/")
		require.Equal(t, http.StatusOK, home.Code, key)
		var entries []string
		for _, m := range regexp.MustCompile(`<li><a href="/console/([a-z]+)">[A-Z]`).FindAllStringSubmatch(home.Body.String(), -1) {
			entries = append(entries, m[1])
		}
		require.Equal(t, sections, entries, key)
		person := get("/users/" + person + "?resource=glucose")
		require.Equal(t, map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[key == "manager"], person.Code)
		require.Equal(t, key == "manager", strings.Contains(person.Body.String(), "Sources"), key)
	}
	require.NotContains(t, beside, "")
}

func TestSignIn_fromAnotherOriginIsForbidden(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/console/sign-in", strings.NewReader("key=manager"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	newConsole().ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Empty(t, w.Header().Get("Set-Cookie"))
}

func TestNew_refusesAnIncompleteConfig(t *testing.T) {
	_, err := console.New(console.Config{})
	require.ErrorContains(t, err, "TeamKey are required")
}

// A session ends once the API refuses its key, and a value of a person that does not decode is
// in no log line.
func TestSession_endsWhenItsKeyIsRevoked(t *testing.T) {
	var revoked atomic.Bool
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case revoked.Load() && r.Header.Get("X-Management-Key") != "":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v2/user/"+person:
			_, _ = io.WriteString(w, `{"client_user_id":"planted","created_on":"planted"}`)
		default:
			fakeAPI().ServeHTTP(w, r)
		}
	})
	var logged bytes.Buffer
	h, err := console.New(console.Config{API: api, Org: "org", Team: "team", Environment: "sandbox", TeamKey: "team key",
		Log: slog.New(slog.NewTextHandler(&logged, nil))})
	require.NoError(t, err)
	in := httptest.NewRequest(http.MethodPost, "/console/sign-in", strings.NewReader("key=manager"))
	in.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	cookie := w.Result().Cookies()[0]
	get := func(path string) int {
		r := httptest.NewRequest(http.MethodGet, "/console"+path, nil)
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, http.StatusOK, get("/query"))
	require.Equal(t, http.StatusInternalServerError, get("/users/"+person))
	require.Contains(t, logged.String(), "the answer of the API to a GET must be JSON that fits the contract")
	require.NotContains(t, logged.String(), "planted")
	revoked.Store(true)
	require.Equal(t, http.StatusSeeOther, get("/query"))
	revoked.Store(false)
	require.Equal(t, http.StatusSeeOther, get("/query"), "the session has ended")
}

// A person who leaves before the page is there is no failure.
func TestAbortedRequest_isNotLogged(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/user/"+person {
			leave()
			_, _ = io.WriteString(w, `{`) // an answer that broke off
			return
		}
		fakeAPI().ServeHTTP(w, r)
	})
	var logged bytes.Buffer
	h, err := console.New(console.Config{API: api, Org: "org", Team: "team", Environment: "sandbox", TeamKey: "team key",
		Log: slog.New(slog.NewTextHandler(&logged, nil))})
	require.NoError(t, err)
	in := httptest.NewRequest(http.MethodPost, "/console/sign-in", strings.NewReader("key=manager"))
	in.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/console/users/"+person, nil)
	r.AddCookie(w.Result().Cookies()[0])
	h.ServeHTTP(httptest.NewRecorder(), r)
	require.Error(t, ctx.Err())
	require.Empty(t, logged.String())
}
