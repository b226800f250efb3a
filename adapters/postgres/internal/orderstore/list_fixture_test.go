package orderstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personkey"
)

// A largeTeam is a team with many orders of two years, which are the same in every run.
type largeTeam struct {
	team  healthlab.TeamID
	today time.Time
	first []string
	last  []string
	rows  int
}

func newLargeTeam(rows int) *largeTeam {
	c := &largeTeam{team: healthlab.TeamID{UUID: idOf(1, 0)}, today: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), rows: rows}
	r := rand.New(rand.NewPCG(1, 1))
	syllables := strings.Fields("an ba be bo cal da del do el en fer ga go gra ha hel is jo ka ki la lan len li lo mar me mi mo na ne nor o per qui ra re ri ro sa sen si so sta ta te ti to tor va ve vi wen xa ya zu")
	word := func(least, most int) string {
		var b strings.Builder
		for range least + r.IntN(most-least+1) {
			b.WriteString(syllables[r.IntN(len(syllables))])
		}
		return strings.ToUpper(b.String()[:1]) + b.String()[1:]
	}
	for range 1000 {
		c.first = append(c.first, word(2, 3))
	}
	for range 30_000 {
		c.last = append(c.last, word(2, 4))
	}
	return c
}

func idOf(kind, n int) (id uuid.UUID) {
	// In no order, as other ids are.
	binary.BigEndian.PutUint64(id[:], uint64(n+1)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(id[8:], uint64(kind)<<32|uint64(n))
	return id
}

// often picks the first of a list much more often than the last.
func often(r *rand.Rand, list []string) string {
	x := r.Float64()
	return list[int(x*x*x*float64(len(list)))]
}

// order is the nth order; the last one is the newest.
func (c *largeTeam) order(n int) orders.Record {
	const years2 = 2 * 365 * 24 * time.Hour
	r := rand.New(rand.NewPCG(2, uint64(n)))
	created := c.today.Add(-years2 + time.Duration(float64(years2)*float64(n)/float64(c.rows))).Truncate(time.Second)
	patient := r.IntN(c.rows / 3)
	p := rand.New(rand.NewPCG(3, uint64(patient)))
	first, last := often(p, c.first), often(p, c.last)
	born := healthlab.DateOf(time.Date(1940, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, p.IntN(65*365)))
	method := []catalogue.CollectionMethod{catalogue.WalkInTest, catalogue.WalkInTest, catalogue.WalkInTest, catalogue.WalkInTest, catalogue.Testkit,
		catalogue.Testkit, catalogue.AtHomePhlebotomy}[r.IntN(7)]
	if r.IntN(200) == 0 {
		method = catalogue.OnSiteCollection
	}
	at := healthlab.At(created)
	o := orders.Record{Order: orders.Order{
		ID: orders.OrderID{UUID: idOf(2, n)}, TeamID: c.team, UserID: healthlab.UserID{UUID: idOf(3, patient)}, Origin: orders.OriginInitial,
		LabTest: catalogue.LabTest{ID: catalogue.LabTestID{UUID: idOf(4, n%50)}, Slug: "basics", Name: "Metabolic basics", Method: method, SampleType: catalogue.Serum,
			Status: catalogue.LabTestActive, IsActive: true, Markers: []catalogue.Marker{{ID: 12, Name: "Glucose", Slug: "glucose"}, {ID: 13, Name: "Urea", Slug: "urea"}}},
		Details: orders.NewDetails(method, idOf(5, n), idOf(6, n), at), BillingType: catalogue.ClientBill, CreatedAt: at,
		OrderTransaction: orders.OrderTransaction{ID: orders.TransactionID{UUID: idOf(7, n)}},
	}}
	sample := fmt.Sprintf("S%08d", n)
	o.SampleID = &sample
	if method == catalogue.Testkit && r.IntN(20) == 0 { // a kit that is not registered
		o.ShippingDetails = &people.ShippingDetails{ReceiverName: "Front Desk", FirstLine: "8 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"}
		o.UserID = healthlab.UserID{UUID: idOf(3, c.rows)}
	} else {
		o.PatientDetails = &people.PatientDetails{FirstName: &first, LastName: &last, DOB: born, Gender: people.Female}
		o.PatientAddress = &people.PatientAddress{ReceiverName: first + " " + last, FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"}
		if r.IntN(50) == 0 {
			o.PatientAddress.ReceiverName = often(r, c.first) + " " + last
		}
	}
	if r.IntN(20) == 0 {
		day := healthlab.DateOf(created.AddDate(0, 0, r.IntN(40)))
		o.ActivateBy = &day
	}
	age := float64(c.rows-n) / float64(c.rows) // 0 is now
	low, read := orders.Completed, labresult.Interpretation("")
	switch x := r.Float64(); {
	case age < 0.02*r.Float64():
		open := []orders.LowLevel{orders.Ordered, orders.RequisitionCreated}
		low = open[r.IntN(2)]
	case x < 0.06:
		low = orders.Cancelled
	case x < 0.07:
		low = orders.SampleError
	default:
		if x > 0.99 {
			low = orders.Corrected
		}
		switch y := r.Float64(); {
		case y < 0.01:
			read = labresult.Critical
		case y < 0.25:
			read = labresult.Abnormal
		case y < 0.26:
			read = labresult.UnknownInterpretation
		default:
			read = labresult.Normal
		}
	}
	if read != "" {
		o.Interpretation = &read
		o.Results = &labresult.Report{Metadata: labresult.Metadata{Age: "41", DOB: born.String(), Patient: last, Status: labresult.Final},
			Results: []labresult.Result{{Name: "Glucose", Slug: "glucose", Result: "5.1", Type: labresult.Numeric, Interpretation: read},
				{Name: "Urea", Slug: "urea", Result: "4.1", Type: labresult.Numeric, Interpretation: labresult.Normal}}}
	}
	took := time.Duration(0)
	if low != orders.Ordered {
		took = min(time.Duration(r.Float64()*float64(14*24*time.Hour)), c.today.Sub(created)).Truncate(time.Second)
	}
	o.UpdatedAt = healthlab.At(created.Add(took))
	event := orders.OrderEvent{ID: int64(n) * 10, CreatedAt: at, Status: orders.StatusOf(method, orders.Ordered)}
	o.Events = []orders.OrderEvent{event}
	if low != orders.Ordered {
		o.Events = append(o.Events, orders.OrderEvent{ID: event.ID + 1, CreatedAt: o.UpdatedAt, Status: orders.StatusOf(method, low)})
	}
	o.LastEvent = o.Events[len(o.Events)-1]
	return o
}

// personKeys returns keys of persons in memory.
func personKeys() *personkey.Keys {
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		panic(err) // the key has the right length
	}
	return personkey.New(memory.NewPersonKeys(), sealer, &personkey.Options{Cached: 100_000})
}

// load fills an empty database with the orders of a clinic, as fast as it goes: the
// indexes are made afterwards.
func (c *largeTeam) load(b testing.TB, pool *pgxpool.Pool, s *Store) {
	b.Helper()
	ctx := context.Background()
	rows, err := pool.Query(ctx, `select indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index
		where indrelid in ('healthlab.orders'::regclass, 'healthlab.order_search'::regclass) and not indisunique`)
	require.NoError(b, err)
	var name, text string
	var again []string
	_, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		again = append(again, text)
		return nil
	})
	require.NoError(b, err)
	for _, text := range again {
		_, err := pool.Exec(ctx, `drop index healthlab.`+strings.Fields(text)[2])
		require.NoError(b, err)
	}
	columns := insertOrder[strings.Index(insertOrder, "healthlab.orders (")+len("healthlab.orders ("):]
	columns, _, _ = strings.Cut(columns, ")")
	var list []string
	for _, name := range strings.Split(columns, ",") {
		list = append(list, strings.TrimSpace(name))
	}
	var all sync.WaitGroup
	const hands = 2
	for hand := range hands {
		all.Go(func() {
			for start := hand * 10_000; start < c.rows; start += hands * 10_000 {
				var kept, parts [][]any
				for n := start; n < min(start+10_000, c.rows); n++ {
					o := c.order(n)
					row, err := s.keepOrder(ctx, &o, orderIdentity(&o), 1)
					if err != nil {
						b.Error(err)
						return
					}
					kept, parts = append(kept, row[:len(list)]), append(parts, append(slices.Clone(row[:4]), row[6], row[8], row[9], row[10],
						row[11], row[12], row[13], row[14], row[15]))
				}
				for _, t := range []struct {
					name    string
					columns []string
					rows    [][]any
				}{{"orders", list, kept}, {"order_search", []string{"team_id", "order_id", "transaction_id", "user_id", "method", "last_status", "created_at", "updated_at",
					"event_at", "activate_by", "interpretation", "tokens", "sort_name"}, parts}} {
					if _, err := pool.CopyFrom(ctx, pgx.Identifier{"healthlab", t.name}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	texts := make(chan string, len(again))
	for _, text := range again {
		texts <- text
	}
	close(texts)
	for range hands {
		all.Go(func() {
			for text := range texts {
				if _, err := pool.Exec(ctx, text); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.False(b, b.Failed(), "the rows or the indexes are not there") // without them nothing is worth measuring
	_, err = pool.Exec(ctx, `vacuum (analyze) healthlab.orders, healthlab.order_search`)
	require.NoError(b, err)
}

// lists are queries with each filter, and some with more than one; the nth of a kind.
func (c *largeTeam) lists() []listKind {
	day := func(n, days int) (from, before time.Time) {
		from = c.today.AddDate(0, 0, -1-n*37%700-days)
		return from, from.AddDate(0, 0, days)
	}
	named := func(n int) orders.Order {
		for {
			if o := c.order(n * 7919 % c.rows); o.PatientDetails != nil {
				return o.Order
			}
			n++
		}
	}
	first := func(n int) string { return *named(n).PatientDetails.FirstName }
	last := func(n int) string { return *named(n).PatientDetails.LastName }
	inside := func(n int) string { // three letters of a name
		for len(last(n)) < 4 {
			n++
		}
		return last(n)[1:4]
	}
	yes, no := true, false
	return []listKind{
		{"none", func(*orders.Query, int) {}},
		{"created/day", func(q *orders.Query, n int) { q.CreatedFrom, q.CreatedBefore = day(n, 1) }},
		{"created/month", func(q *orders.Query, n int) { q.CreatedFrom, q.CreatedBefore = day(n, 30) }},
		{"created/year", func(q *orders.Query, n int) { q.CreatedFrom, q.CreatedBefore = day(n%3, 365) }},
		{"updated/day", func(q *orders.Query, n int) { q.UpdatedFrom, q.UpdatedBefore = day(n, 1) }},
		{"updated/month", func(q *orders.Query, n int) { q.UpdatedFrom, q.UpdatedBefore = day(n, 30) }},
		{"updated/today", func(q *orders.Query, _ int) { q.UpdatedFrom = c.today.AddDate(0, 0, -1) }},
		{"status/ordered", func(q *orders.Query, _ int) { q.Status = []orders.LowLevel{orders.Ordered} }},
		{"status/cancelled", func(q *orders.Query, _ int) { q.Status = []orders.LowLevel{orders.Cancelled} }},
		{"status/completed", func(q *orders.Query, _ int) { q.Status = []orders.LowLevel{orders.Completed} }},
		{"status/several", func(q *orders.Query, _ int) {
			q.Status = []orders.LowLevel{orders.Ordered, orders.SampleError, orders.Corrected}
		}},
		{"method/testkit", func(q *orders.Query, _ int) { q.Methods = []catalogue.CollectionMethod{catalogue.Testkit} }},
		{"method/on_site", func(q *orders.Query, _ int) { q.Methods = []catalogue.CollectionMethod{catalogue.OnSiteCollection} }},
		{"critical/true", func(q *orders.Query, _ int) { q.Critical = &yes }},
		{"critical/false", func(q *orders.Query, _ int) { q.Critical = &no }},
		{"interpretation/abnormal", func(q *orders.Query, _ int) { q.Interpretation = labresult.Abnormal }},
		{"interpretation/normal", func(q *orders.Query, _ int) { q.Interpretation = labresult.Normal }},
		{"interpretation/unknown", func(q *orders.Query, _ int) { q.Interpretation = labresult.UnknownInterpretation }},
		{"activation/scheduled", func(q *orders.Query, _ int) { q.Activations = []orders.ActivationType{orders.ActivationScheduled} }},
		{"activation/current", func(q *orders.Query, _ int) { q.Activations = []orders.ActivationType{orders.ActivationCurrent} }},
		{"user", func(q *orders.Query, n int) { q.User = named(n).UserID }},
		{"user/stock", func(q *orders.Query, _ int) { q.User = healthlab.UserID{UUID: idOf(3, c.rows)} }},
		{"ids", func(q *orders.Query, n int) {
			for i := range 50 {
				q.IDs = append(q.IDs, orders.OrderID{UUID: idOf(2, (n+i*97)%c.rows)})
			}
		}},
		{"transaction", func(q *orders.Query, n int) { q.Transaction.UUID = idOf(7, n*31%c.rows) }},
		{"patient/whole", func(q *orders.Query, n int) { q.PatientName = first(n) + " " + last(n) }},
		{"patient/last", func(q *orders.Query, n int) { q.PatientName = last(n) }},
		{"patient/first", func(q *orders.Query, n int) { q.PatientName = first(n) }},
		{"patient/3", func(q *orders.Query, n int) { q.PatientName = inside(n) }},
		{"patient/2", func(q *orders.Query, n int) { q.PatientName = last(n)[:2] }},
		{"patient/1", func(q *orders.Query, n int) { q.PatientName = last(n)[:1] }},
		{"patient/none", func(q *orders.Query, _ int) { q.PatientName = "q9" }},
		{"recipient/last", func(q *orders.Query, n int) { q.Recipient = last(n) }},
		{"recipient/desk", func(q *orders.Query, _ int) { q.Recipient = "front desk" }},
		{"search/last", func(q *orders.Query, n int) { q.Search = last(n) }},
		{"search/first", func(q *orders.Query, n int) { q.Search = first(n) }},
		{"search/3", func(q *orders.Query, n int) { q.Search = inside(n) }},
		{"search/1", func(q *orders.Query, n int) { q.Search = last(n)[:1] }},
		{"search/birthday", func(q *orders.Query, n int) { q.Search = named(n).PatientDetails.DOB.String() }},
		{"search/birthyear", func(q *orders.Query, n int) { q.Search = named(n).PatientDetails.DOB.String()[:4] }},
		{"search/order", func(q *orders.Query, n int) { q.Search = named(n).ID.String() }},
		{"search/user", func(q *orders.Query, n int) { q.Search = named(n).UserID.String() }},
		{"month+status+method", func(q *orders.Query, n int) {
			q.CreatedFrom, q.CreatedBefore = day(n, 30)
			q.Status, q.Methods = []orders.LowLevel{orders.Completed}, []catalogue.CollectionMethod{catalogue.Testkit}
		}},
		{"critical+updated", func(q *orders.Query, n int) {
			q.Critical = &yes
			q.UpdatedFrom, q.UpdatedBefore = day(n, 90)
		}},
		{"patient+status", func(q *orders.Query, n int) { q.PatientName, q.Status = last(n), []orders.LowLevel{orders.Completed} }},
		{"letter+abnormal", func(q *orders.Query, n int) { q.PatientName, q.Interpretation = last(n)[:1], labresult.Abnormal }},
		{"letter+status", func(q *orders.Query, n int) {
			q.PatientName, q.Status = last(n)[:1], []orders.LowLevel{orders.Ordered}
		}},
		{"letter+completed", func(q *orders.Query, n int) {
			q.Search, q.Status = last(n)[:1], []orders.LowLevel{orders.Completed}
		}},
		{"letter+not critical", func(q *orders.Query, n int) { q.PatientName, q.Critical = last(n)[:1], &no }},
		{"letter+current", func(q *orders.Query, n int) {
			q.Search, q.Activations = last(n)[:1], []orders.ActivationType{orders.ActivationCurrent}
		}},
		{"letter+methods", func(q *orders.Query, n int) {
			q.Search = last(n)[:1]
			q.Methods = []catalogue.CollectionMethod{catalogue.Testkit, catalogue.WalkInTest, catalogue.AtHomePhlebotomy}
		}},
		{"letter+day", func(q *orders.Query, n int) {
			q.PatientName = last(n)[:1]
			q.CreatedFrom, q.CreatedBefore = day(n, 1)
		}},
		{"first+method", func(q *orders.Query, n int) {
			q.PatientName, q.Methods = first(n), []catalogue.CollectionMethod{catalogue.Testkit}
		}},
		{"search+user", func(q *orders.Query, n int) { q.Search, q.User = last(n), named(n).UserID }},
		{"all of them", func(q *orders.Query, n int) {
			q.CreatedFrom, q.UpdatedFrom = c.today.AddDate(-1, 0, 0), c.today.AddDate(-1, 0, 0)
			q.Search, q.PatientName, q.Recipient = last(n), last(n), last(n)
			q.Status, q.Methods = []orders.LowLevel{orders.Completed, orders.Corrected}, []catalogue.CollectionMethod{catalogue.Testkit, catalogue.WalkInTest}
			q.Critical, q.Activations = &no, []orders.ActivationType{orders.ActivationCurrent}
		}},
	}
}

// listKind is a filter of lists.
type listKind struct {
	name   string
	filter func(q *orders.Query, n int)
}
