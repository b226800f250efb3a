package service_test

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/store"
)

// check holds the service and the receiver to the truth.
func (w *simulation) check(days int) {
	ctx, t := w.t.Context(), w.t
	require.Empty(t, w.receiver.violations)
	require.Zero(t, w.provider.refused, "the provider refused grants: a rotation was lost")
	require.LessOrEqual(t, w.provider.most, hourLimit, "requests in an hour")
	live, gone := 0, map[[16]byte]bool{}
	for i, p := range w.people {
		if !p.deleted.IsZero() {
			w.checkErased(i, p)
			gone[p.id.UUID] = true
			continue
		}
		live++
		stored, hours := w.stored(p, "steps")
		require.Equal(t, p.steps.of, stored.of, "steps of person %d", i)
		require.Equal(t, p.hours.of, hours.of, "zones of the steps of person %d", i)
		require.Equal(t, p.steps.of, w.receiver.steps[p.id].of, "events of person %d", i)
		require.Equal(t, p.steps.sum(), w.total(p, days), "all steps of person %d", i)
		if p.account != "" {
			heart := w.provider.accounts[p.account].heart.of
			stored, _ = w.stored(p, "heartrate")
			require.Equal(t, heart, stored.of, "heart rates of person %d", i)
			require.Equal(t, heart, w.receiver.heart[p.id].of, "events of the heart rates of person %d", i)
		}
		for _, placed := range p.orders {
			w.checkOrder(i, placed)
		}
	}
	list, err := w.s.Health.Users(ctx, w.team, 0, 1)
	require.NoError(t, err)
	require.Equal(t, live, list.Total)
	require.NotEmpty(t, idsIn(w.store.Kept(), map[[16]byte]bool{w.team.UUID: true}), "the look at the store finds ids")
	require.Empty(t, idsIn(w.store.Kept(), gone), "ids of people who left are still in the store")
}

// checkErased checks that nothing answers about a person who left.
func (w *simulation) checkErased(i int, p *person) {
	ctx, t := w.t.Context(), w.t
	_, err := w.s.Health.User(ctx, w.team, p.id)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = w.s.Health.Deletions().Undo(ctx, w.team, healthdata.DeletedUser{User: p.id})
	require.ErrorIs(t, err, healthlab.NotFound, "person %d is erased", i)
	for _, o := range p.orders {
		_, err = w.s.Orders.Get(ctx, w.team, o.id)
		require.ErrorIs(t, err, healthlab.NotFound, "order of person %d is erased", i)
	}
}

// checkOrder checks that an order has ended, was told of to the end, and holds no slot.
func (w *simulation) checkOrder(i int, placed placedOrder) {
	t := w.t
	o, err := w.store.Orders().Get(t.Context(), w.team, placed.id)
	require.NoError(t, err)
	lost := *o.Passthrough == "sandbox:"+string(sandbox.NeverAgain) // the laboratory sends nothing
	final := o.LowLevel().Final()
	booked := slices.ContainsFunc(o.Visits, func(v orders.Visit) bool { return !v.Status.Final() })
	waits := o.Method() == catalogue.AtHomePhlebotomy && !booked &&
		slices.Contains([]orders.LowLevel{orders.RequisitionCreated, orders.AppointmentCancelled}, o.LowLevel()) // for an appointment
	require.True(t, final || lost || waits, "order of person %d, %s, %s, is %s", i, *o.Passthrough, placed.visit, o.LastEvent.Status)
	require.Len(t, o.Events, w.receiver.history[placed.id.String()], "events of an order of person %d", i)
	require.False(t, final && booked, "an ended order of person %d holds a slot", i)
}

// stored reads the values that the service has, and the hours of their zones, and adds them to the
// digest.
func (w *simulation) stored(p *person, resource string) (values, hours values) {
	samples, err := w.s.Health.AllSamples(w.t.Context(), w.team, p.id, healthdata.SampleQuery{Resource: resource, From: time.Unix(0, 0), To: time.Now()})
	require.NoError(w.t, err)
	values.begin, hours.begin = w.begin, w.begin
	for _, s := range samples {
		values.set(s.Timestamp.Time, s.Value.Number)
		hours.set(s.Timestamp.Time, float64(*s.TimezoneOffset/3600))
	}
	require.NoError(w.t, binary.Write(w.receiver.digest, binary.LittleEndian, values.of))
	return values, hours
}

// total asks for the sum of all steps of a person.
func (w *simulation) total(p *person, days int) int {
	request, err := w.s.Aggregate.Decode(fmt.Appendf(nil, `{
		"timeframe": {"type": "relative", "anchor": %q, "past": {"unit": "day", "value": %d}},
		"queries": [{"select": [{"func": "sum", "arg": {"timeseries": "steps", "field": "value"}}]}]
	}`, time.Now().Format(time.DateOnly), days+62), false)
	require.NoError(w.t, err)
	result, err := w.s.Aggregate.Query(w.t.Context(), w.team, p.id, &request)
	require.NoError(w.t, err)
	column, err := result.Frames[0].Column("sum")
	require.NoError(w.t, err)
	sum, _ := column.Value(0).(float64)
	return int(sum)
}

// uuidText is an id as text.
var uuidText = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// idsIn returns the tables whose rows have any of the ids, as 16 bytes or as text. The access log is left
// out: it keeps that a user was erased.
func idsIn(rows []store.Row, ids map[[16]byte]bool) []string {
	var found []string
	for i := range rows {
		r := &rows[i]
		if !strings.HasPrefix(r.Table, "access_") && (ids[r.User.UUID] || ids[r.Team.UUID] || hasID(r, ids)) {
			found = append(found, r.Table)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// hasID reports whether the id, an index value or the document of a row has any of the ids.
func hasID(r *store.Row, ids map[[16]byte]bool) bool {
	for _, text := range [][]byte{[]byte(r.ID), []byte(r.Index[0]), []byte(r.Index[1]), r.Doc} {
		for at := 0; at+16 <= len(text); at++ {
			if ids[[16]byte(text[at:])] {
				return true
			}
		}
		for _, id := range uuidText.FindAll(text, -1) {
			if ids[uuid.MustParse(string(id))] {
				return true
			}
		}
	}
	return false
}
