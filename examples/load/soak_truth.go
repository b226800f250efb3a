package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// pause is the wait between two attempts at a request, and between the kill of a server and its restart.
const pause = 250 * time.Millisecond

// truth has the writes that the servers have acknowledged. None of them may be lost.
type truth struct {
	mu      sync.Mutex
	samples map[string]map[int64]float64 // heart rates by user and second
	nights  map[string]map[string]bool   // dates of nights by user
	orders  map[string]map[string]bool   // ids of orders by user
	writes  int
}

// recordSeed records the data that the users have before the load: days days of heart rates, and one order each.
func (t *truth) recordSeed(people []*person, days int) {
	t.samples, t.nights, t.orders = map[string]map[int64]float64{}, map[string]map[string]bool{}, map[string]map[string]bool{}
	for i, u := range people {
		t.samples[u.id], t.nights[u.id], t.orders[u.id] = map[int64]float64{}, map[string]bool{}, map[string]bool{u.order: true}
		again := person{id: u.id, at: u.at.Add(-time.Duration(days) * 24 * time.Hour)}
		t.recordUpload(u.id, again.heartRate(days*24*60, i))
	}
}

// acknowledged records a request that succeeded, unless it only reads. order is the id of the placed order; empty for
// an upload.
func (t *truth) acknowledged(d due, order string) {
	if d.method != http.MethodPost || operations[d.op].name == question {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	if order != "" {
		t.orders[d.user.id][order] = true
		return
	}
	t.recordUpload(d.user.id, d.request)
}

// recordUpload records the samples or the night of an upload r of a user.
func (t *truth) recordUpload(user string, r request) {
	switch data := r.body.(map[string]any)["data"].(type) {
	case []map[string]any:
		for _, one := range data {
			at, _ := time.Parse(time.RFC3339, one["timestamp"].(string)) // valid, because this program wrote it
			t.samples[user][at.Unix()] = float64(one["value"].(int))
		}
	case []any:
		t.nights[user][data[0].(map[string]any)["calendar_date"].(string)] = true
	}
}

func (t *truth) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

// inbox has the events that the receiver got.
type inbox struct {
	mu       sync.Mutex
	ids      map[string]bool
	repeated int                         // number of messages whose id the receiver had already got
	samples  map[string]map[int64]string // ids of messages by user and second
	last     map[string]int64            // second of the latest sample by user
	orders   map[string]map[int]string   // ids of messages by order, then by the order's number of events in the message
	length   map[string]int              // largest number of events in a message, by order
	wrong    []string
}

// record records one message of the servers by its id. It ignores a repeated id, and notes an unexpected body as wrong.
func (b *inbox) record(id string, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ids == nil {
		b.ids, b.samples, b.last, b.orders, b.length = map[string]bool{}, map[string]map[int64]string{}, map[string]int64{}, map[string]map[int]string{}, map[string]int{}
	}
	if b.ids[id] {
		b.repeated++
		return
	}
	b.ids[id] = true
	var m struct {
		Type string          `json:"event_type"`
		User string          `json:"user_id"`
		Data json.RawMessage `json:"data"`
	}
	err := json.Unmarshal(body, &m)
	switch {
	case err != nil:
	case strings.HasPrefix(m.Type, "daily.data.heartrate."):
		err = b.recordSamples(id, m.User, m.Data)
	case strings.HasPrefix(m.Type, "labtest.order."):
		err = b.recordOrder(id, m.Data)
	}
	if err != nil {
		b.wrong = append(b.wrong, fmt.Sprintf("message %s: %v", id, err))
	}
}

func (b *inbox) recordSamples(id, user string, data []byte) error {
	var batch struct {
		Data []struct {
			At time.Time `json:"timestamp"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &batch); err != nil {
		return err
	}
	if b.samples[user] == nil {
		b.samples[user] = map[int64]string{}
	}
	before := b.last[user]
	for _, one := range batch.Data {
		at := one.At.Unix()
		if other := b.samples[user][at]; other != "" {
			return fmt.Errorf("an event of the message was already sent in the message %s", other)
		}
		if at <= before {
			return errors.New("the events are out of order: one of the message is older than the last of an earlier message")
		}
		b.samples[user][at], b.last[user] = id, max(b.last[user], at)
	}
	return nil
}

func (b *inbox) recordOrder(id string, data []byte) error {
	var o struct {
		ID     string            `json:"id"`
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	n := len(o.Events)
	if b.orders[o.ID] == nil {
		b.orders[o.ID] = map[int]string{}
	}
	if other := b.orders[o.ID][n]; other != "" {
		return fmt.Errorf("an event of the message was already sent in the message %s", other)
	}
	if n <= b.length[o.ID] {
		return errors.New("the events are out of order: one of the message is older than the last of an earlier message")
	}
	b.orders[o.ID][n], b.length[o.ID] = id, n
	return nil
}

// missing returns how many of the samples no message contains, plus how many of the orders' events have no message in
// which they are the last event. lengths has the number of events by order.
func (b *inbox) missing(samples map[string]map[int64]float64, lengths map[string]int) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for user, all := range samples {
		for at := range all {
			if b.samples[user][at] == "" {
				n++
			}
		}
	}
	for order, length := range lengths {
		for i := range length {
			if b.orders[order][i+1] == "" {
				n++
			}
		}
	}
	return n
}

// check is one guarantee that a run tests, with the violations that it found.
type check struct {
	Name, Found string
	Wrong       []string
}

// arrivalTime is how long after the end of the load the last event may arrive.
const arrivalTime = 3 * time.Minute

// check compares the data that the servers have stored and the events that the receiver got with the acknowledged
// writes. It returns the results, and the time until the last event arrived.
func (s *soak) check(ctx context.Context, m *mix) ([]check, time.Duration, error) {
	began := time.Now()
	stored, placed := check{Name: "Each acknowledged upload is read back with its values"}, check{Name: "Each acknowledged order exists, once"}
	lengths, samples, nights, orders := map[string]int{}, 0, 0, 0
	for _, u := range m.people {
		found, err := s.readSamples(ctx, m, u)
		if err != nil {
			return nil, 0, err
		}
		for at, value := range s.truth.samples[u.id] {
			if got, known := found[at]; !known || got != value {
				stored.Wrong = append(stored.Wrong, fmt.Sprintf("user %s: the sample of %s is lost or has another value", u.id, time.Unix(at, 0).UTC().Format(time.RFC3339)))
			}
			samples++
		}
		dates, err := s.readNights(ctx, m, u)
		if err != nil {
			return nil, 0, err
		}
		for date := range s.truth.nights[u.id] {
			if !dates[date] {
				stored.Wrong = append(stored.Wrong, fmt.Sprintf("user %s: a night is lost", u.id))
			}
			nights++
		}
		of, err := s.readOrders(ctx, m, u)
		if err != nil {
			return nil, 0, err
		}
		for id := range s.truth.orders[u.id] {
			if of[id] == 0 {
				placed.Wrong = append(placed.Wrong, fmt.Sprintf("order %s is lost", id))
			}
			lengths[id] = of[id]
			orders++
		}
		for id := range of {
			if !s.truth.orders[u.id][id] {
				placed.Wrong = append(placed.Wrong, fmt.Sprintf("order %s was not acknowledged: a request was done twice", id))
			}
		}
	}
	stored.Found = fmt.Sprintf("%d samples, %d nights", samples, nights)
	placed.Found = fmt.Sprintf("%d orders", orders)

	missing := s.inbox.missing(s.truth.samples, lengths)
	for missing > 0 && time.Since(began) < arrivalTime && ctx.Err() == nil {
		time.Sleep(pause)
		missing = s.inbox.missing(s.truth.samples, lengths)
	}
	arrived := time.Since(began)
	s.inbox.mu.Lock() // the receiver may still add messages
	defer s.inbox.mu.Unlock()
	delivered := check{Name: "Each event is delivered, with one id, in order per key", Found: fmt.Sprintf("%d messages, %d of them sent once more", len(s.inbox.ids), s.inbox.repeated), Wrong: s.inbox.wrong}
	if missing > 0 {
		delivered.Wrong = append(delivered.Wrong, fmt.Sprintf("%d samples and events of orders did not arrive within %v", missing, arrivalTime))
	}
	answers := check{Name: "Each request succeeds within two minutes, and fails meanwhile only with 503, or with 409 for a key that a killed server holds", Found: fmt.Sprint(s.failures), Wrong: s.wrong}
	return []check{stored, placed, delivered, answers}, arrived, ctx.Err()
}

func (s *soak) readSamples(ctx context.Context, m *mix, u *person) (map[int64]float64, error) {
	found := map[int64]float64{}
	query := url.Values{"start_date": {m.day(-11)}, "end_date": {m.day(1)}}
	for {
		var page struct {
			Groups map[string][]struct {
				Data []struct {
					At    time.Time `json:"timestamp"`
					Value float64   `json:"value"`
				} `json:"data"`
			} `json:"groups"`
			Next *string `json:"next_cursor"`
		}
		if err := m.call(ctx, get("/v2/timeseries/"+u.id+"/heartrate/grouped?"+query.Encode()), &page); err != nil {
			return nil, err
		}
		for _, groups := range page.Groups {
			for _, g := range groups {
				for _, one := range g.Data {
					found[one.At.Unix()] = one.Value
				}
			}
		}
		if page.Next == nil {
			return found, nil
		}
		query.Set("next_cursor", *page.Next)
	}
}

func (s *soak) readNights(ctx context.Context, m *mix, u *person) (map[string]bool, error) {
	var answer struct {
		Sleep []struct {
			Date string `json:"calendar_date"`
		} `json:"sleep"`
	}
	if err := m.call(ctx, get(fmt.Sprintf("/v2/summary/sleep/%s?start_date=%s&end_date=%s", u.id, m.day(-310), m.day(1))), &answer); err != nil {
		return nil, err
	}
	dates := map[string]bool{}
	for _, night := range answer.Sleep {
		dates[night.Date] = true
	}
	return dates, nil
}

// readOrders reads the orders of a user from the server, and returns the number of events of each.
func (s *soak) readOrders(ctx context.Context, m *mix, u *person) (map[string]int, error) {
	found := map[string]int{}
	for page := 1; ; page++ {
		var answer struct {
			Orders []struct {
				ID     string            `json:"id"`
				Events []json.RawMessage `json:"events"`
			} `json:"orders"`
			Total int `json:"total"`
		}
		if err := m.call(ctx, get(fmt.Sprintf("/v3/orders?user_id=%s&page=%d&size=100", u.id, page)), &answer); err != nil {
			return nil, err
		}
		for _, o := range answer.Orders {
			found[o.ID] = len(o.Events)
		}
		if len(answer.Orders) == 0 || len(found) >= answer.Total {
			return found, nil
		}
	}
}
