package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
)

// tour is a demonstration that uses the running service as a customer's program would: over HTTP, with an API key,
// and with a receiver of events.
type tour struct {
	out io.Writer
	url string
	key string
	// keyHeader and linkHeader are the names of the HTTP headers for the API key and the link token.
	keyHeader, linkHeader string
	seen                  *receiver
	// days are the seven days of the tour's data, in the time zone loc. The last one is yesterday.
	days []healthlab.Date
	loc  *time.Location
	// person is the invented person whose devices make the data.
	person healthlab.UserID
}

// tourLabTest is the id, in lab.json, of the test kit that the tour orders.
const tourLabTest = "dfe2bc7d-9b6d-50bf-a9af-9c33cb9131f2"

// tourZone is the time zone of the tour's person, tourDays the number of days with data, and tourSports the number
// of different sports in these days.
const (
	tourZone   = "America/New_York"
	tourDays   = 7
	tourSports = 3
)

// tourEndpoint is the description of the tour's webhook endpoint, by which later tours find it.
const tourEndpoint = "receiver of the tour"

// playTour runs the demonstration and prints it. Its receiver continues to accept events until the server stops.
func (s *host) playTour(ctx context.Context, stdout io.Writer) error {
	seen, err := s.receiveTour(ctx)
	if err != nil {
		return err
	}
	loc, err := time.LoadLocation(tourZone)
	if err != nil {
		return err
	}
	t := &tour{
		out: stdout, url: s.url, key: s.apiKey, seen: seen, loc: loc, days: lastDays(time.Now().In(loc)),
		keyHeader: cmp.Or(s.keyHeader, "x-service-api-key"), linkHeader: cmp.Or(s.linkTokenHeader, "x-service-link-token"),
	}
	t.person = sportyPerson(t.days, loc)
	user, err := t.play(ctx)
	if err != nil {
		return err
	}
	seen.forget()
	t.step("Where to look next")
	s.printConsoleLink(stdout, "/users/"+user.String()+"/sleep")
	t.printf("Steps of both devices, and which one counted: %s%s/users/%s?resource=steps", s.url, consolePath, user)
	t.printf("Every event that was sent: %s%s/events", s.url, consolePath)
	t.printf("Every operation: %s/docs/", s.url)
	t.printf("A service with data of your own, step by step: docs/first-day.md")
	t.printf("The secrets are %s.", s.secretPlace())
	if s.logPath != "" {
		t.printf("The log is in %s.", s.logPath)
	}
	fmt.Fprintln(stdout, "\ntour: ok")
	return nil
}

// receiveTour starts the tour's receiver and registers a webhook endpoint for it, in place of endpoints of earlier
// tours on this store. In a durable store, the endpoint is disabled when the server stops.
func (s *host) receiveTour(ctx context.Context) (*receiver, error) {
	secret, err := webhook.GenerateSecret(randomReader)
	if err != nil {
		return nil, err
	}
	seen, err := receive(ctx, secret)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, seen.close)
	page, err := s.Webhooks.List(ctx, webhook.EndpointQuery{Team: s.team})
	if err != nil {
		return nil, err
	}
	for _, old := range page.Endpoints {
		if old.Description == tourEndpoint {
			if err := s.Webhooks.Delete(ctx, s.team, old.ID); err != nil {
				return nil, err
			}
		}
	}
	e, err := s.Webhooks.Create(ctx, s.team, webhook.NewEndpoint{URL: seen.url, Secret: secret.Text(), Description: tourEndpoint})
	if err != nil {
		return nil, err
	}
	if s.store.volatile || s.freshDir {
		return seen, nil
	}
	s.closers = append(s.closers, func() error {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		_, err := s.Webhooks.Patch(stopping, s.team, e.ID, webhook.Patch{Disabled: new(true)})
		return err
	})
	return seen, nil
}

func lastDays(now time.Time) (list []healthlab.Date) {
	for i := range tourDays {
		list = append(list, healthlab.DateOf(now).AddDays(i-tourDays))
	}
	return list
}

// sportyPerson returns an invented person who does at least tourSports different sports on the days in list, in the
// zone loc.
func sportyPerson(list []healthlab.Date, loc *time.Location) healthlab.UserID {
	for i := 0; ; i++ {
		person := healthlab.UserID{UUID: uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "healthlab:tour:%d", i))}
		sports := map[string]bool{}
		for _, day := range list {
			_, all := tourWatch.Summaries(person, "workouts", day, loc)
			for _, w := range all {
				sports[w.(*healthdata.Workout).Sport.Slug] = true
			}
		}
		if len(sports) >= tourSports {
			return person
		}
	}
}

// play runs the steps of the tour and returns the user whose data it created.
func (t *tour) play(ctx context.Context) (healthlab.UserID, error) {
	user, err := t.createUser(ctx)
	if err != nil {
		return user, err
	}
	for _, part := range []func(context.Context, healthlab.UserID) error{t.uploadData, t.readBack, t.printMergedSteps, t.connect, t.order} {
		if err := part(ctx, user); err != nil {
			return user, err
		}
	}
	return user, nil
}

func (t *tour) step(format string, args ...any) {
	fmt.Fprintf(t.out, "\n— "+format+"\n", args...)
}

func (t *tour) printf(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// table prints rows with their cells in columns. Each cell must end with a tab.
func (t *tour) table(rows []string) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	return w.Flush()
}

func (t *tour) createUser(ctx context.Context) (healthlab.UserID, error) {
	t.step("A team adds a person")
	var user struct {
		ID healthlab.UserID `json:"user_id"`
	}
	err := t.call(ctx, "POST", "/v2/user/", map[string]any{
		"client_user_id": "tour-" + uuid.NewString()[:8], "fallback_time_zone": tourZone,
	}, &user)
	if err != nil {
		return healthlab.UserID{}, err
	}
	err = t.call(ctx, "POST", "/v2/link/provider/manual/manual", map[string]any{"user_id": user.ID}, nil)
	if err != nil {
		return healthlab.UserID{}, err
	}
	t.printf("The person lives in %s and is user %s.", tourZone, user.ID)
	t.printf("The team connects the provider manual, which is for data that it sends itself.")
	return user.ID, t.printEvents(ctx, map[string]int{"provider.connection.created": 1})
}

// tourWatch and tourPhone are the tour person's two devices. They make up data.
var tourWatch, tourPhone = sandbox.Provider{Slug: "watch"}, sandbox.Provider{Slug: "phone"}

// tourUpload is the upload of one resource of a device in the tour.
type tourUpload struct {
	kind, resource string
	device         sandbox.Provider
	source         healthdata.SourceType
}

// uploadData uploads a week of the person's data from both devices, and prints the events that this causes.
func (t *tour) uploadData(ctx context.Context, user healthlab.UserID) error {
	t.step("The team sends a week of the person's watch, and of the phone")
	uploads := []tourUpload{
		{"timeseries", "heartrate", tourWatch, healthdata.SourceWatch}, {"timeseries", "steps", tourWatch, healthdata.SourceWatch},
		{"timeseries", "steps", tourPhone, healthdata.SourcePhone}, {"summary", "activity", tourWatch, healthdata.SourceWatch},
		{"summary", "sleep", tourWatch, healthdata.SourceWatch}, {"summary", "sleep_cycle", tourWatch, healthdata.SourceWatch},
		{"summary", "workouts", tourWatch, healthdata.SourceWatch},
	}
	events := map[string]int{} // expected events: one for each summary, and at least one for each upload of samples
	rows := []string{"resource\tsource\tnew\t"}
	for _, up := range uploads {
		data, err := t.dataOf(up)
		if err != nil {
			return err
		}
		path, least := fmt.Sprintf("/v2/timeseries/%s/%s", user, up.resource), 1
		if up.kind == "summary" {
			path, least = fmt.Sprintf("/v2/summary/%s/%s", up.resource, user), len(data)
		}
		events["daily.data."+up.resource+".created"] += least
		var counts struct{ New, Changed, Same, Dropped int }
		body := map[string]any{"provider": "manual", "source": map[string]any{"type": up.source}, "data": data}
		if err := t.call(ctx, "POST", path, body, &counts); err != nil {
			return err
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t", up.resource, up.source, counts.New))
		// Uploading the same data again changes nothing and causes no event.
		if err := t.call(ctx, "POST", path, body, &counts); err != nil {
			return err
		}
		if counts.New+counts.Changed != 0 {
			return fmt.Errorf("a repeated upload of %s must change nothing", up.resource)
		}
	}
	if err := t.table(rows); err != nil {
		return err
	}
	t.printf("The team sends all of it once more, which changes nothing and has no event.")
	return t.printEvents(ctx, events)
}

// dataOf returns the summaries or samples of an upload.
func (t *tour) dataOf(up tourUpload) (data []any, err error) {
	for _, date := range t.days {
		day := up.device.Day(t.person, date, t.loc)
		if up.kind == "timeseries" {
			_, samples := day.Samples(up.resource)
			for _, s := range samples {
				data = append(data, s)
			}
			continue
		}
		_, items := day.Summaries(up.resource)
		for _, item := range items {
			plain, err := uploadFields(item)
			if err != nil {
				return nil, err
			}
			data = append(data, plain)
		}
	}
	return data, nil
}

// uploadFields returns a summary as a JSON object for an upload. It leaves out the fields that the service sets.
func uploadFields(item any) (map[string]any, error) {
	b, err := json.Marshal(item)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, err
	}
	for _, name := range []string{"id", "user_id", "source", "created_at", "updated_at", "date", "sleep_stream",
		"sleep_id", "source_provider", "source_type", "source_app_id", "source_device_id"} {
		delete(out, name)
	}
	return out, nil
}

// printEvents waits until at least the given numbers of events have arrived, and prints the number of arrived events by
// type. The keys of least are prefixes of event types.
func (t *tour) printEvents(ctx context.Context, least map[string]int) error {
	events, err := t.seen.waitFor(ctx, func(all []received) bool {
		for kind, missing := range least {
			for _, e := range all {
				if strings.HasPrefix(e.eventType, kind) {
					missing--
				}
			}
			if missing > 0 {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	var order []string
	counts := map[string]int{}
	for _, e := range events {
		if counts[e.eventType] == 0 {
			order = append(order, e.eventType)
		}
		counts[e.eventType]++
	}
	t.printf("The team's endpoint received these events, each with its signature verified:")
	for _, name := range order {
		t.printf("  %3d × %s", counts[name], name)
	}
	return nil
}

func (t *tour) readBack(ctx context.Context, user healthlab.UserID) error {
	t.step("The team reads the nights and the workouts")
	var answer struct {
		Sleep []struct {
			Date       healthlab.Date `json:"calendar_date"`
			Total      int            `json:"total"`
			REM        int            `json:"rem"`
			Deep       int            `json:"deep"`
			HRLowest   int            `json:"hr_lowest"`
			AverageHRV float64        `json:"average_hrv"`
		} `json:"sleep"`
		Workouts []struct {
			Date      healthlab.Date        `json:"calendar_date"`
			Sport     struct{ Name string } `json:"sport"`
			Moving    int                   `json:"moving_time"`
			Distance  *float64              `json:"distance"`
			AverageHR int                   `json:"average_hr"`
		} `json:"workouts"`
	}
	for _, resource := range []string{"sleep", "workouts"} {
		if err := t.call(ctx, "GET", fmt.Sprintf("/v2/summary/%s/%s?start_date=%s", resource, user, t.days[0]), nil, &answer); err != nil {
			return err
		}
	}
	if len(answer.Sleep) != tourDays {
		return errors.New("the summary of sleep must have every uploaded night")
	}
	rows := []string{"night to\tasleep\tREM\tdeep\tlowest bpm\tHRV ms\t"}
	for _, n := range answer.Sleep {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%.0f\t", n.Date, hours(n.Total), hours(n.REM), hours(n.Deep), n.HRLowest, n.AverageHRV))
	}
	if err := t.table(rows); err != nil {
		return err
	}
	rows = []string{"workout\tsport\ttime\tkm\tmean bpm\t"}
	for _, w := range answer.Workouts {
		km := "-"
		if w.Distance != nil {
			km = fmt.Sprintf("%.1f", *w.Distance/1000)
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t", w.Date, w.Sport.Name, hours(w.Moving), km, w.AverageHR))
	}
	return t.table(rows)
}

func hours(seconds int) string { return fmt.Sprintf("%d:%02d", seconds/3600, seconds/60%60) }

// stepsAnswer is the JSON answer to a query for the steps of each day.
type stepsAnswer struct {
	Results []struct {
		Table struct {
			Index []string  `json:"index"`
			Sum   []float64 `json:"sum"`
		} `json:"table"`
	} `json:"results"`
	Explain []struct {
		Merged struct {
			Totals []struct {
				Type             string
				Used, Part, Lost int
			} `json:"totals"`
		} `json:"merged"`
	} `json:"explain"`
}

// stepsByDay queries the person's steps by local day, of one source type, or merged if source is empty.
func (t *tour) stepsByDay(ctx context.Context, user healthlab.UserID, source healthdata.SourceType) (a stepsAnswer, err error) {
	query := map[string]any{
		"select": []any{map[string]any{"func": "sum", "arg": map[string]any{"timeseries": "steps", "field": "value"}}},
		"group_by": []any{map[string]any{
			"date_trunc": map[string]any{"unit": "day", "value": 1}, "arg": map[string]any{"index": "timeseries"},
		}},
	}
	if source != "" {
		query["where"] = fmt.Sprintf("source_type = '%s'", source)
	}
	question := map[string]any{
		"timeframe": map[string]any{"type": "relative", "anchor": t.days[tourDays-1], "past": map[string]any{"unit": "day", "value": tourDays}},
		"queries":   []any{query}, "config": map[string]any{"explain": true},
	}
	if err = t.call(ctx, "POST", fmt.Sprintf("/aggregate/v1/user/%s/query", user), question, &a); err != nil {
		return a, err
	}
	if len(a.Results) != 1 || len(a.Explain) != 1 || len(a.Results[0].Table.Index) != tourDays {
		return a, errors.New("the query must return a row for every day")
	}
	return a, nil
}

// printMergedSteps prints the steps that each of the two devices counted, and the steps that the service computes from
// both.
func (t *tour) printMergedSteps(ctx context.Context, user healthlab.UserID) error {
	t.step("The team asks for the steps of each day")
	var of [3]stepsAnswer
	for i, source := range []healthdata.SourceType{healthdata.SourceWatch, healthdata.SourcePhone, ""} {
		var err error
		if of[i], err = t.stepsByDay(ctx, user, source); err != nil {
			return err
		}
	}
	rows := []string{"day\twatch\tphone\tmerged\t"}
	for i, day := range of[2].Results[0].Table.Index {
		rows = append(rows, fmt.Sprintf("%s\t%.0f\t%.0f\t%.0f\t", day[:10], of[0].Results[0].Table.Sum[i], of[1].Results[0].Table.Sum[i], of[2].Results[0].Table.Sum[i]))
	}
	if err := t.table(rows); err != nil {
		return err
	}
	t.printf("Each device has gaps, a clock and counts of its own. The service prefers the watch, and takes the phone's")
	t.printf("steps where the watch has a gap. The explanation of the query lists each stretch. In all:")
	for _, total := range of[2].Explain[0].Merged.Totals {
		t.printf("  of the %s %d intervals count in full, %d in part, %d not", total.Type, total.Used, total.Part, total.Lost)
	}
	return nil
}

// tourSource is the invented provider that the tour's person connects, and tourKinds the number of kinds of data
// that it sends.
const tourSource, tourKinds = "fern_diary", 5

// connect links the provider as the person's browser would, through the provider's sign-in page, waits until its
// history is fetched, and refreshes it.
func (t *tour) connect(ctx context.Context, user healthlab.UserID) error {
	t.step("The person connects a source, and the service fetches its history")
	var issued struct {
		Token string `json:"link_token"`
	}
	if err := t.call(ctx, "POST", "/v2/link/token", map[string]any{"user_id": user, "provider": tourSource}, &issued); err != nil {
		return err
	}
	var source struct {
		Name string `json:"name"`
		URL  string `json:"oauth_url"`
	}
	if err := t.call(ctx, "GET", "/v2/link/provider/oauth/"+tourSource, nil, &source, t.linkHeader, issued.Token); err != nil {
		return err
	}
	form := url.Values{"name": {"tour"}, "answer": {"allow"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, source.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("content-type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r) // signs in, and follows the redirect back to the service
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("sign-in: %s", answer.Status)
	}
	t.printf("The person signs in at %s.", source.Name)
	if err := t.printEvents(ctx, map[string]int{"historical.data.": tourKinds}); err != nil {
		return err
	}
	t.printf("The team asks for a refresh. The service asks the source for news of:")
	var news struct {
		Refreshed  []string `json:"refreshed_sources"`
		InProgress []string `json:"in_progress_sources"`
		Failed     []string `json:"failed_sources"`
	}
	if err := t.call(ctx, "POST", "/v2/user/refresh/"+user.String()+"?timeout=30", nil, &news); err != nil {
		return err
	}
	for _, name := range slices.Sorted(slices.Values(append(news.Refreshed, news.InProgress...))) {
		t.printf("  %s", name)
	}
	if len(news.Refreshed)+len(news.InProgress) != tourKinds {
		return errors.New("every resource of the user must be refreshed")
	}
	return nil
}

// order orders a test kit, and makes the simulated laboratory report results for it.
func (t *tour) order(ctx context.Context, user healthlab.UserID) error {
	t.step("The team orders a test kit, and a simulated laboratory brings it to its result")
	var placed struct {
		Order struct {
			ID string `json:"id"`
		} `json:"order"`
	}
	address := map[string]any{
		"receiver_name": "Tour Person", "first_line": "1 Example Street", "city": "Springfield", "state": "IL",
		"zip": "62701", "country": "US", "phone_number": "+12175550100",
	}
	if err := t.call(ctx, "POST", "/v3/order", map[string]any{
		"user_id": user, "order_set": map[string]any{"lab_test_ids": []string{tourLabTest}},
		"patient_details": map[string]any{
			"first_name": "Tour", "last_name": "Person", "dob": "1984-05-09", "gender": "female",
			"phone_number": "+12175550100", "email": "tour@example.org",
		},
		"patient_address": address,
	}, &placed); err != nil {
		return err
	}
	t.printf("The order is %s. It goes through:", placed.Order.ID)
	path := "/v3/order/" + placed.Order.ID
	if err := t.call(ctx, "POST", path+"/test", map[string]any{}, nil); err != nil {
		return err
	}
	var order struct {
		Events []struct {
			ID     int    `json:"id"`
			Status string `json:"status"`
		} `json:"events"`
		Transaction struct {
			Status string `json:"status"`
		} `json:"order_transaction"`
	}
	for last, at := 0, time.Now(); ; {
		if err := t.call(ctx, "GET", path, nil, &order); err != nil {
			return err
		}
		if n := len(order.Events); n > last {
			last, at = n, time.Now()
		}
		if last > 0 && strings.HasPrefix(order.Events[len(order.Events)-1].Status, "completed.") {
			break
		}
		if time.Since(at) > patience {
			return fmt.Errorf("the order has had no new event since event %d", last)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, e := range order.Events {
		t.printf("  %3d  %s", e.ID, e.Status)
	}
	t.printf("Its transaction is %s. The service prints its documents:", order.Transaction.Status)
	if err := t.documents(ctx, path); err != nil {
		return err
	}
	return t.printEvents(ctx, map[string]int{"labtest.order.": len(order.Events)})
}

// documents downloads the documents of an order and prints their sizes.
func (t *tour) documents(ctx context.Context, path string) error {
	for _, name := range []string{"requisition/pdf", "labels/pdf?collection_date=2026-03-02T08:30:00-06:00", "collection_instruction_pdf", "result/pdf"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+path+"/"+name, nil)
		if err != nil {
			return err
		}
		r.Header.Set(t.keyHeader, t.key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		file, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK || !bytes.HasPrefix(file, []byte("%PDF-")) {
			return fmt.Errorf("%s: %s", name, answer.Status)
		}
		name, _, _ = strings.Cut(name, "?")
		t.printf("  %s of %d kB", name, (len(file)+999)/1000)
	}
	return nil
}

// call sends one request with the team's API key and decodes the answer into out. header has further headers,
// alternately a name and a value.
func (t *tour) call(ctx context.Context, method, path string, in, out any, header ...string) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, t.url+path, body)
	if err != nil {
		return err
	}
	r.Header.Set(t.keyHeader, t.key)
	if in != nil {
		r.Header.Set("content-type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, b)
	}
	if out == nil || len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, out)
}
