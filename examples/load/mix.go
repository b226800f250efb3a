package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// placeOrder and question are the names of two operations that other code refers to.
const placeOrder, question = "place order", "query week by day"

// labTest is the id of a test kit of the sandbox's laboratory.
const labTest = "dfe2bc7d-9b6d-50bf-a9af-9c33cb9131f2"

// operation is one kind of request in the mix, with its share.
type operation struct {
	name   string
	weight int // share of the requests in percent
	make   func(m *mix, user *person, n int) request
}

// request is one HTTP request to the server.
type request struct {
	method, path string
	body         any
	key          string // idempotency key, with which a repeated request takes effect once; empty for none
}

func get(path string) request { return request{method: http.MethodGet, path: path} }

func post(path string, body any) request {
	return request{method: http.MethodPost, path: path, body: body}
}

// operations is the mix of requests: mostly uploads and reads, few orders.
var operations = []operation{
	{"ingest heart rate", 30, func(_ *mix, u *person, n int) request { return u.heartRate(5, n) }},
	{"read samples", 18, func(_ *mix, u *person, _ int) request { // reads the day of the user's newest sample
		return get(fmt.Sprintf("/v2/timeseries/%s/heartrate/grouped?start_date=%s", u.id, u.at.Format(time.DateOnly)))
	}},
	{"read sleep", 14, func(m *mix, u *person, _ int) request {
		return get(fmt.Sprintf("/v2/summary/sleep/%s?start_date=%s", u.id, m.day(-7)))
	}},
	{"read user", 12, func(_ *mix, u *person, _ int) request { return get("/v2/user/" + u.id) }},
	{question, 10, func(m *mix, u *person, _ int) request {
		return post("/aggregate/v1/user/"+u.id+"/query", m.question())
	}},
	{"read order", 8, func(_ *mix, u *person, _ int) request { return get("/v3/order/" + u.order) }},
	{"ingest sleep", 4, func(m *mix, u *person, n int) request { return u.sleep(m.day(-n % 300)) }},
	{"list orders", 2, func(_ *mix, u *person, _ int) request { return get("/v3/orders?user_id=" + u.id) }},
	{placeOrder, 2, func(_ *mix, u *person, _ int) request { return u.placeOrder() }},
}

// mix sends requests of random operations at a constant rate.
type mix struct {
	config
	target func() *server // returns the server to which the next request goes
	// do sends a request. newMix sets a function that sends it once and does not retry.
	do     func(ctx context.Context, d due) error
	client *http.Client
	start  time.Time
	people []*person
	n      int // number of requests so far
}

// person is a user of the service whose data the mix writes and reads.
type person struct {
	id, order string
	name      string
	at        time.Time // time of the next sample
}

func newMix(c config, target func() *server) *mix {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost, t.DisableCompression = c.workers, true
	m := &mix{config: c, target: target, client: &http.Client{Transport: t, Timeout: time.Minute}, start: time.Now()}
	m.do = func(ctx context.Context, d due) error { return m.call(ctx, d.request, nil) }
	return m
}

func (m *mix) day(n int) string { return m.start.AddDate(0, 0, n).UTC().Format(time.DateOnly) }

// heartRate returns an upload with one heart rate a minute for the user's next minutes. n varies the values between
// requests.
func (u *person) heartRate(minutes, n int) request {
	data := make([]map[string]any, minutes)
	for i := range data {
		data[i] = map[string]any{"timestamp": u.at.Format(time.RFC3339), "unit": "bpm", "value": 60 + (i*7+n)%40}
		u.at = u.at.Add(time.Minute)
	}
	return post("/v2/timeseries/"+u.id+"/heartrate", map[string]any{"provider": "manual", "source": map[string]any{"type": "app"}, "data": data})
}

// sleep returns an upload of the night that ends on the morning of day (YYYY-MM-DD).
func (u *person) sleep(day string) request {
	end, _ := time.Parse(time.DateOnly, day) // valid, because mix.day made it
	end = end.Add(6 * time.Hour)
	night := map[string]any{
		"bedtime_start": end.Add(-8 * time.Hour).Format(time.RFC3339), "bedtime_stop": end.Format(time.RFC3339),
		"duration": 28800, "total": 27000, "awake": 1800, "light": 14400, "rem": 6300, "deep": 6300, "type": "long_sleep", "calendar_date": day,
	}
	return post("/v2/summary/sleep/"+u.id, map[string]any{"provider": "manual", "source": map[string]any{"type": "app"}, "data": []any{night}})
}

// placeOrder returns an order of a test kit for the user.
func (u *person) placeOrder() request {
	return post("/v3/order", map[string]any{
		"user_id": u.id, "order_set": map[string]any{"lab_test_ids": []string{labTest}},
		"patient_details": map[string]any{"first_name": "Kim", "last_name": "Load", "dob": "1984-05-09", "gender": "female", "phone_number": "+12175550100", "email": "load@example.org"},
		"patient_address": map[string]any{
			"receiver_name": "Kim Load", "first_line": "1 Example Street", "city": "Springfield", "state": "IL", "zip": "62701", "country": "US", "phone_number": "+12175550100",
		},
	})
}

// question returns a query of a user's heart rates: their number, and the lowest, mean and highest one, for each day of
// a week.
func (m *mix) question() map[string]any {
	value := map[string]any{"timeseries": "heartrate", "field": "value"}
	fn := func(name string) map[string]any { return map[string]any{"func": name, "arg": value} }
	return map[string]any{
		"timeframe": map[string]any{"type": "relative", "anchor": m.day(0), "past": map[string]any{"unit": "day", "value": 7}},
		"queries": []any{map[string]any{
			"select":   []any{fn("count"), fn("min"), fn("mean"), fn("max")},
			"group_by": []any{map[string]any{"date_trunc": map[string]any{"unit": "day", "value": 1}, "arg": map[string]any{"index": "timeseries"}}},
		}},
	}
}

// seed creates the users, each with some days of heart rates, one night and one order.
func (m *mix) seed(ctx context.Context) error {
	m.people = make([]*person, m.users)
	jobs := make(chan int)
	failed := make(chan error, m.workers)
	var group sync.WaitGroup
	for range min(m.workers, 8) {
		group.Go(func() {
			for i := range jobs {
				if err := m.seedOne(ctx, i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for i := range m.users {
		select {
		case jobs <- i:
			continue
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		break
	}
	close(jobs)
	group.Wait()
	select {
	case late := <-failed:
		return late
	default:
		return err
	}
}

func (m *mix) seedOne(ctx context.Context, i int) error {
	u := &person{name: fmt.Sprintf("load-%d", i), at: m.start.UTC().AddDate(0, 0, -9).Truncate(time.Minute)}
	m.people[i] = u
	var user struct {
		ID string `json:"user_id"`
	}
	if err := m.call(ctx, post("/v2/user/", map[string]any{"client_user_id": u.name, "fallback_time_zone": "America/Chicago"}), &user); err != nil {
		return err
	}
	u.id = user.ID
	if err := m.call(ctx, post("/v2/link/provider/manual/manual", map[string]any{"user_id": u.id}), nil); err != nil {
		return err
	}
	const day = 24 * 60
	if err := m.call(ctx, u.heartRate(m.days*day, i), nil); err != nil {
		return err
	}
	if err := m.call(ctx, u.sleep(m.day(-1)), nil); err != nil {
		return err
	}
	var placed struct {
		Order struct {
			ID string `json:"id"`
		} `json:"order"`
	}
	err := m.call(ctx, u.placeOrder(), &placed)
	u.order = placed.Order.ID
	return err
}

// due is a request, with the time at which it must be sent.
type due struct {
	op   int
	user *person
	at   time.Time
	request
}

// sample is the measurement of one request.
type sample struct {
	op      int
	at      time.Duration // when the request was due, from the start of the run
	latency time.Duration // from the instant at which the request was due to the end of the answer
	failed  bool
}

// send sends random requests of the mix at the configured rate for a duration (long), and returns the measurements. All
// requests of a user go through one queue.
func (m *mix) send(ctx context.Context, long time.Duration) ([]sample, error) {
	queues := make([]chan due, m.queues)
	for i := range queues {
		queues[i] = make(chan due, int(m.rate*long.Seconds())/m.queues*2+1)
	}
	found := make([][]sample, m.workers)
	began := time.Now()
	var group sync.WaitGroup
	for w := range m.workers {
		group.Go(func() {
			for d := range queues[w%len(queues)] {
				err := m.do(ctx, d)
				found[w] = append(found[w], sample{op: d.op, at: d.at.Sub(began), latency: time.Since(d.at), failed: err != nil})
			}
		})
	}
	step := time.Duration(float64(time.Second) / m.rate)
	for at := began; at.Sub(began) < long && ctx.Err() == nil; at = at.Add(step) {
		time.Sleep(time.Until(at))
		i := rand.N(len(m.people))
		op := pick()
		m.n++
		queues[i%len(queues)] <- due{op, m.people[i], at, operations[op].make(m, m.people[i], m.n)}
	}
	for _, q := range queues {
		close(q)
	}
	group.Wait()
	var all []sample
	for _, some := range found {
		all = append(all, some...)
	}
	return all, ctx.Err()
}

// pick returns the index of a random operation, with the probability of its weight.
func pick() int {
	left := rand.N(100)
	for i, op := range operations {
		if left -= op.weight; left < 0 {
			return i
		}
	}
	return 0
}

// call sends one request with the team's API key, and reads the whole answer. It decodes the answer into out,
// unless out is nil.
func (m *mix) call(ctx context.Context, r request, out any) error {
	b, err := m.answer(ctx, r)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(b, out)
}

func (m *mix) answer(ctx context.Context, r request) ([]byte, error) {
	return m.answerOf(ctx, m.target(), r)
}

func (m *mix) answerOf(ctx context.Context, to *server, r request) ([]byte, error) {
	var body io.Reader = http.NoBody
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	in, err := http.NewRequestWithContext(ctx, r.method, to.url+r.path, body)
	if err != nil {
		return nil, err
	}
	in.Header.Set("x-service-api-key", to.key)
	if r.key != "" {
		in.Header.Set("x-idempotency-key", r.key)
	}
	if r.body != nil {
		in.Header.Set("content-type", "application/json")
	}
	answer, err := m.client.Do(in)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return nil, &statusError{answer.StatusCode, fmt.Sprintf("%s %s: %s: %s", r.method, r.path, answer.Status, strings.TrimSpace(string(b)))}
	}
	return b, nil
}

// statusError is the error for an answer with an error status.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }
