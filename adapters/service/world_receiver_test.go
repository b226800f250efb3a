package service_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/webhook"
)

// receiver takes events like a customer: it fails at times, and knows messages by their id.
type receiver struct {
	random            *rand.Rand
	begin             time.Time
	seen, before      map[string]bool  // ids of messages: of these days, and of the days before
	newest            map[string]int64 // sequence of the newest message, by what it is about
	history           map[string]int   // by order: number of events of the last message
	steps, heart      map[healthlab.UserID]*values
	received, refused int
	violations        []string
	digest            hash.Hash // of all that was received
}

func newReceiver(seed uint64, begin time.Time) *receiver {
	return &receiver{
		random: rand.New(rand.NewPCG(seed, 2)), begin: begin, seen: map[string]bool{}, newest: map[string]int64{},
		history: map[string]int{}, steps: map[healthlab.UserID]*values{}, heart: map[healthlab.UserID]*values{}, digest: sha256.New(),
	}
}

func (r *receiver) notify(_ context.Context, n webhook.Notification) webhook.Result {
	if r.random.IntN(20) == 0 {
		r.refused++
		return webhook.Result{Class: webhook.ClassThrottled, Status: 503}
	}
	if r.seen[n.ID] || r.before[n.ID] {
		r.violations = append(r.violations, n.Type+": a message was sent again after it was accepted")
		return webhook.Result{Class: webhook.ClassOK, Status: 200}
	}
	r.seen[n.ID] = true
	r.received++
	r.digest.Write([]byte(n.ID))
	r.digest.Write(n.Body)
	var message struct {
		Type     string           `json:"event_type"`
		User     healthlab.UserID `json:"user_id"`
		Sequence int64            `json:"sequence"`
		Data     json.RawMessage  `json:"data"`
	}
	if err := json.Unmarshal(n.Body, &message); err != nil {
		r.violations = append(r.violations, err.Error())
	}
	switch message.Type {
	case orders.EventOrderCreated, orders.EventOrderUpdated:
		var o struct {
			ID     string            `json:"id"`
			Events []json.RawMessage `json:"events"`
		}
		if err := json.Unmarshal(message.Data, &o); err != nil || len(o.Events) <= r.history[o.ID] {
			r.violations = append(r.violations, fmt.Sprintf("order %s: %d events after %d", o.ID, len(o.Events), r.history[o.ID]))
		}
		r.history[o.ID] = len(o.Events)
		r.follows(o.ID, message.Sequence)
	case "daily.data.steps.created", "daily.data.steps.updated":
		r.take(r.steps, message.User, message.Data)
		r.follows(message.User.String()+" steps", message.Sequence)
	case "daily.data.heartrate.created", "daily.data.heartrate.updated":
		r.take(r.heart, message.User, message.Data)
		r.follows(message.User.String()+" heart rates", message.Sequence)
	}
	return webhook.Result{Class: webhook.ClassOK, Status: 200}
}

func (r *receiver) follows(key string, sequence int64) {
	if sequence <= r.newest[key] {
		r.violations = append(r.violations, fmt.Sprintf("%s: message %d came after %d", key, sequence, r.newest[key]))
	}
	r.newest[key] = sequence
}

// take keeps the newest values of a person.
func (r *receiver) take(of map[healthlab.UserID]*values, user healthlab.UserID, data []byte) {
	var batch struct {
		Data []struct {
			At    healthlab.Time `json:"timestamp"`
			Value float64        `json:"value"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &batch); err != nil {
		r.violations = append(r.violations, err.Error())
	}
	if of[user] == nil {
		of[user] = &values{begin: r.begin}
	}
	for _, x := range batch.Data {
		of[user].set(x.At.Time, x.Value)
	}
}

func (r *receiver) forget() { r.before, r.seen = r.seen, map[string]bool{} }

// figures are what the report counts: how often each thing happened until now.
var figures = []struct {
	name string
	of   func(w *simulation) int
}{
	{"samples of devices", func(w *simulation) int { return w.samples }},
	{"corrections", func(w *simulation) int { return w.corrections }},
	{"duplicates", func(w *simulation) int { return w.duplicates }},
	{"changes of zone", func(w *simulation) int { return w.zones }},
	{"pulls", func(w *simulation) int { return w.provider.pulls }},
	{"rotations of grants", func(w *simulation) int { return w.provider.rotations }},
	{"renewals whose answer was lost", func(w *simulation) int { return w.provider.lost }},
	{"requests while the provider was down", func(w *simulation) int { return w.provider.outages }},
	{"requests over a limit", func(w *simulation) int { return w.provider.limited }},
	{"orders", func(w *simulation) int { return w.placed }},
	{"appointments", func(w *simulation) int { return w.booked }},
	{"orders cancelled by the team", func(w *simulation) int { return w.cancelled }},
	{"deletions", func(w *simulation) int { return w.deleted }},
	{"events received", func(w *simulation) int { return w.receiver.received }},
	{"events refused by the receiver", func(w *simulation) int { return w.receiver.refused }},
}

// figures returns the values of figures now.
func (w *simulation) figures() []int {
	now := make([]int, len(figures))
	for i, f := range figures {
		now[i] = f.of(w)
	}
	return now
}

// report says what happened, with a plot of each figure by week.
func (w *simulation) report(digest string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%38s %10s  by week\n", "", "in all")
	for i, total := range w.figures() {
		fmt.Fprintf(&b, "%38s %10d  %s\n", figures[i].name, total, spark(w.weeks, i))
	}
	fmt.Fprintf(&b, "%38s %10d of %d\n", "requests in the busiest hour", w.provider.most, hourLimit)
	fmt.Fprintf(&b, "%38s %10d of %d\n", "kinds of orders, by test and failure", min(w.placed, len(w.tests)*len(failures)), len(w.tests)*len(failures))
	fmt.Fprintf(&b, "%38s %10d of %d\n", "kinds of appointments, by failure", min(w.asked, len(visitFailures)), len(visitFailures))
	fmt.Fprintf(&b, "%38s  %s\n", "digest of all messages and values", digest)
	return b.String()
}

// spark plots how much a figure grew in each week.
func spark(weeks [][]int, figure int) string {
	var grown []int
	before, top := 0, 1
	for _, week := range weeks {
		grown = append(grown, week[figure]-before)
		before, top = week[figure], max(top, week[figure]-before)
	}
	levels := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, n := range grown {
		b.WriteRune(levels[(n*(len(levels)-1)+top-1)/top])
	}
	return b.String()
}
