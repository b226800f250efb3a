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
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/webhook"
)

// tour plays the main job against the running service, as a customer's program would:
// over HTTP, with a key, and with a receiver of its own.
type tour struct {
	out io.Writer
	url string
	key string
	// keyHeader names the header with the key.
	keyHeader string
	seen      *receiver
}

// tourLabTest is the kit that the tour orders, in lab.json.
const tourLabTest = "dfe2bc7d-9b6d-50bf-a9af-9c33cb9131f2"

// tourZone is where the tour's person lives, tourDays is how long they are watched.
const (
	tourZone = "America/New_York"
	tourDays = 7
)

// playTour plays the main job and prints it. The receiver is taken down before it
// returns.
func (s *host) playTour(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	secret, err := webhook.GenerateSecret(randomReader)
	if err != nil {
		return err
	}
	seen, err := receive(ctx, secret)
	if err != nil {
		return err
	}
	defer seen.close()
	e, err := s.Webhooks.Create(ctx, s.team, webhook.NewEndpoint{URL: seen.url, Secret: secret.Text()})
	if err != nil {
		return err
	}
	t := &tour{out: stdout, url: s.url, key: s.apiKey, keyHeader: cmp.Or(s.keyHeader, "x-service-api-key"), seen: seen}
	user, err := t.play(ctx)
	if err != nil {
		return err
	}
	if err := s.Webhooks.Delete(ctx, s.team, e.ID); err != nil {
		return err
	}
	s.printConsoleLink(stdout, "/users/"+user.String()+"/sleep")
	fmt.Fprintln(stdout, "\nsecrets:", s.secretPlace())
	fmt.Fprintln(stdout, "\ntour: ok")
	return nil
}

// play returns the user whose data it made.
func (t *tour) play(ctx context.Context) (healthlab.UserID, error) {
	user, err := t.createUser(ctx)
	if err != nil {
		return user, err
	}
	for _, part := range []func(context.Context, healthlab.UserID) error{t.bringData, t.readBack, t.ask, t.connect, t.order} {
		if err := part(ctx, user); err != nil {
			return user, err
		}
	}
	return user, nil
}

func (t *tour) step(format string, args ...any) {
	fmt.Fprintf(t.out, "\n— "+format+"\n", args...)
}

func (t *tour) createUser(ctx context.Context) (healthlab.UserID, error) {
	t.step("A team creates a user who lives in %s, and connects a source", tourZone)
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
	fmt.Fprintf(t.out, "  user %s, connected to: manual\n", user.ID)
	return user.ID, t.printEvents(ctx, 1, "provider.connection.created")
}

// days returns the local days that the tour looks at, the last one being yesterday.
func days() (list []healthlab.Date, loc *time.Location) {
	loc, err := time.LoadLocation(tourZone)
	if err != nil {
		loc = time.UTC
	}
	yesterday := healthlab.DateOf(time.Now().In(loc)).AddDays(-1)
	for i := range tourDays {
		list = append(list, yesterday.AddDays(i-tourDays+1))
	}
	return list, loc
}

// bringData uploads a week of a person who does not exist.
func (t *tour) bringData(ctx context.Context, user healthlab.UserID) error {
	t.step("A week of data comes in")
	var device sandbox.Provider
	list, loc := days()
	type upload struct {
		kind, resource string
		data           []any
		source         string
	}
	uploads := []upload{
		{kind: "timeseries", resource: "heartrate"}, {kind: "timeseries", resource: "steps"},
		{kind: "summary", resource: "activity"}, {kind: "summary", resource: "sleep"},
		{kind: "summary", resource: "sleep_cycle"},
	}
	for i := range uploads {
		up := &uploads[i]
		for _, day := range list {
			if up.kind == "timeseries" {
				src, samples := device.Samples(user, up.resource, day, loc)
				up.source = string(src.Type)
				for _, s := range samples {
					up.data = append(up.data, s)
				}
				continue
			}
			src, items := device.Summaries(user, up.resource, day, loc)
			up.source = string(src.Type)
			for _, item := range items {
				plain, err := withoutHead(item)
				if err != nil {
					return err
				}
				up.data = append(up.data, plain)
			}
		}
		path := fmt.Sprintf("/v2/timeseries/%s/%s", user, up.resource)
		if up.kind == "summary" {
			path = fmt.Sprintf("/v2/summary/%s/%s", up.resource, user)
		}
		var counts struct{ New, Changed, Same, Dropped int }
		body := map[string]any{"provider": "manual", "source": map[string]any{"type": up.source}, "data": up.data}
		if err := t.call(ctx, "POST", path, body, &counts); err != nil {
			return err
		}
		fmt.Fprintf(t.out, "  %-10s %6d new\n", up.resource, counts.New)
		// The same again changes nothing and has no event.
		if err := t.call(ctx, "POST", path, body, &counts); err != nil {
			return err
		}
		if counts.New+counts.Changed != 0 {
			return fmt.Errorf("a resend of %s changed something", up.resource)
		}
	}
	fmt.Fprintln(t.out, "  … and once more, which changes nothing")
	t.step("The team is told, in signed events")
	return t.printEvents(ctx, 2*tourDays+4, "daily.data.")
}

// withoutHead returns a summary as it is uploaded: without what the service fills in.
func withoutHead(item any) (map[string]any, error) {
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

// printEvents waits for so many events whose type begins with kind, and prints all that have arrived, one
// line for each type.
func (t *tour) printEvents(ctx context.Context, least int, kind string) error {
	events, err := t.seen.take(ctx, func(all []received) bool {
		n := 0
		for _, e := range all {
			if strings.HasPrefix(e.eventType, kind) {
				n++
			}
		}
		return n >= least
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
	for _, name := range order {
		fmt.Fprintf(t.out, "  event %-38s × %-2d signature verified\n", name, counts[name])
	}
	return nil
}

func (t *tour) readBack(ctx context.Context, user healthlab.UserID) error {
	t.step("The team reads the nights")
	list, _ := days()
	var answer struct {
		Sleep []struct {
			Date       healthlab.Date `json:"calendar_date"`
			Total      int            `json:"total"`
			REM        int            `json:"rem"`
			Deep       int            `json:"deep"`
			AverageHRV float64        `json:"average_hrv"`
		} `json:"sleep"`
	}
	path := fmt.Sprintf("/v2/summary/sleep/%s?start_date=%s", user, list[0])
	if err := t.call(ctx, "GET", path, nil, &answer); err != nil {
		return err
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "night to\tasleep\tREM\tdeep\tHRV ms\t")
	for _, n := range answer.Sleep {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t\n", n.Date, hours(n.Total), hours(n.REM), hours(n.Deep), n.AverageHRV)
	}
	if len(answer.Sleep) != tourDays {
		return errors.New("not every night came back")
	}
	return w.Flush()
}

func hours(seconds int) string { return fmt.Sprintf("%d:%02d", seconds/3600, seconds/60%60) }

// ask puts a question over the week: heart rate by day of the user's own calendar.
func (t *tour) ask(ctx context.Context, user healthlab.UserID) error {
	t.step("A question: heart rate by day, in the user's local time")
	list, _ := days()
	value := map[string]any{"timeseries": "heartrate", "field": "value"}
	fn := func(name string) map[string]any { return map[string]any{"func": name, "arg": value} }
	question := map[string]any{
		"timeframe": map[string]any{
			"type": "relative", "anchor": list[len(list)-1], "past": map[string]any{"unit": "day", "value": tourDays},
		},
		"queries": []any{map[string]any{
			"select": []any{fn("count"), fn("min"), fn("mean"), fn("max")},
			"group_by": []any{map[string]any{
				"date_trunc": map[string]any{"unit": "day", "value": 1}, "arg": map[string]any{"index": "timeseries"},
			}},
		}},
	}
	var answer struct {
		Results []struct {
			Table struct {
				Index []string  `json:"index"`
				Count []int     `json:"count"`
				Min   []float64 `json:"min"`
				Mean  []float64 `json:"mean"`
				Max   []float64 `json:"max"`
			} `json:"table"`
		} `json:"results"`
	}
	if err := t.call(ctx, "POST", fmt.Sprintf("/aggregate/v1/user/%s/query", user), question, &answer); err != nil {
		return err
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "day\tsamples\tmin\tmean\tmax\t")
	table := answer.Results[0].Table
	for i, day := range table.Index {
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.1f\t%.0f\t\n", day[:10], table.Count[i], table.Min[i], table.Mean[i], table.Max[i])
	}
	if len(table.Index) != tourDays {
		return errors.New("not every day has an answer")
	}
	return w.Flush()
}

// tourSource is what the tour's person connects, with five kinds of data.
const tourSource, tourKinds = "fern_diary", 5

// connect links a source at the sign-in page of its provider, as the person's browser
// would, waits for its history, and asks for news.
func (t *tour) connect(ctx context.Context, user healthlab.UserID) error {
	t.step("The person connects a source, and its history comes")
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
	if err := t.call(ctx, "GET", "/v2/link/provider/oauth/"+tourSource, nil, &source, "x-service-link-token", issued.Token); err != nil {
		return err
	}
	form := url.Values{"name": {"tour"}, "answer": {"allow"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, source.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("content-type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r) // and follows it back to us
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("sign-in: %s", answer.Status)
	}
	fmt.Fprintf(t.out, "  %s is connected\n", source.Name)
	if err := t.printEvents(ctx, tourKinds, "historical.data."); err != nil {
		return err
	}
	t.step("A refresh: is there anything new?")
	var news struct {
		Refreshed  []string `json:"refreshed_sources"`
		InProgress []string `json:"in_progress_sources"`
		Failed     []string `json:"failed_sources"`
	}
	if err := t.call(ctx, "POST", "/v2/user/refresh/"+user.String()+"?timeout=30", nil, &news); err != nil {
		return err
	}
	for _, name := range news.Refreshed {
		fmt.Fprintf(t.out, "  refreshed %s\n", name)
	}
	if len(news.Refreshed) != tourKinds {
		return errors.New("not everything was refreshed")
	}
	return nil
}

// order sends for a kit, and lets the simulated laboratory finish it.
func (t *tour) order(ctx context.Context, user healthlab.UserID) error {
	t.step("A lab order: a test kit, simulated to its result")
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
	fmt.Fprintf(t.out, "  order %s placed\n", placed.Order.ID)
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
	for {
		if err := t.call(ctx, "GET", path, nil, &order); err != nil {
			return err
		}
		if strings.HasPrefix(order.Events[len(order.Events)-1].Status, "completed.") {
			break
		}
		select {
		case <-ctx.Done():
			return errors.New("the order did not come to its end in time")
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, e := range order.Events {
		fmt.Fprintf(t.out, "  %3d  %s\n", e.ID, e.Status)
	}
	fmt.Fprintf(t.out, "  transaction: %s\n", order.Transaction.Status)
	if err := t.documents(ctx, path); err != nil {
		return err
	}
	return t.printEvents(ctx, len(order.Events), "labtest.order.")
}

// documents reads what there is on paper of an order.
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
		fmt.Fprintf(t.out, "  %s: %d kB\n", name, (len(file)+999)/1000)
	}
	return nil
}

// call makes one request as the team, with further headers, and decodes the answer.
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
