package sandbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// clock only moves when it is told to.
type clock struct{ at time.Time }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }
func newLab(c *clock) *sandbox.Lab {
	return sandbox.NewLab(&sandbox.LabOptions{Now: c.now, Step: time.Hour})
}
func behaviour(text string) *string { return &text }
func kit(passthrough string) exchange.Submission {
	return exchange.Submission{Stage: exchange.SubmitRequisition, Order: orders.Order{
		ID: orders.OrderID{UUID: uuid.New()}, TeamID: healthlab.TeamID{UUID: uuid.New()}, Passthrough: behaviour(passthrough),
		Details: orders.Details{Type: catalogue.Testkit},
	}}
}

func TestLab_passesTheLabBackendSuite(t *testing.T) {
	orderstest.RunLabBackend(t, func(testing.TB) orderstest.LabHarness {
		c := &clock{noon}
		return orderstest.LabHarness{Lab: newLab(c), Pass: func() { c.pass(time.Hour) }, Now: c.now}
	})
}

func TestLab_passthroughTextSelectsAFailure(t *testing.T) {
	lab := newLab(&clock{noon})
	_, err := lab.Submit(t.Context(), kit("sandbox:refused"))
	require.ErrorIs(t, err, healthlab.Invalid)

	s := kit("sandbox:down, silent")
	_, err = lab.Submit(t.Context(), s)
	require.ErrorIs(t, err, healthlab.Unavailable)
	_, err = lab.Submit(t.Context(), s)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	accepted, err := lab.Submit(t.Context(), s)
	require.NoError(t, err)
	require.NotEmpty(t, accepted.SampleID)

	s = kit("sandbox:slow")
	accepted, err = lab.Submit(t.Context(), s)
	require.NoError(t, err)
	require.Empty(t, accepted.SampleID)

	s = kit("sandbox:too_late_to_cancel")
	_, err = lab.Submit(t.Context(), s)
	require.NoError(t, err)
	require.ErrorIs(t, lab.Cancel(t.Context(), s.Order.TeamID, s.Order.ID), healthlab.Precondition)
}

func TestLab_sameOrderGivesTheSameMessages(t *testing.T) {
	s := kit("sandbox:delayed")
	run := func(step time.Duration) []exchange.Message {
		c := &clock{noon}
		lab := newLab(c)
		_, err := lab.Submit(t.Context(), s)
		require.NoError(t, err)
		for c.at.Before(noon.Add(48 * time.Hour)) {
			_, err := lab.Updates(t.Context(), "", 100)
			require.NoError(t, err)
			c.pass(step)
		}
		b, err := lab.Updates(t.Context(), "", 100)
		require.NoError(t, err)
		return b.Messages
	}
	want := run(time.Hour)
	require.Len(t, want, 8)
	require.Equal(t, want, run(7*time.Minute))
	require.Equal(t, want, run(48*time.Hour), "however seldom it is asked")
}

func TestUpdates_unknownCursorStartsFromTheBeginning(t *testing.T) {
	c := &clock{noon}
	lab := newLab(c)
	_, err := lab.Submit(t.Context(), kit(""))
	require.NoError(t, err)
	c.pass(time.Hour)
	for _, cursor := range []string{"", "x", "x:1", ":", "9"} {
		b, err := lab.Updates(t.Context(), cursor, 10)
		require.NoError(t, err)
		require.Len(t, b.Messages, 1, cursor)
	}
}

func TestOutcomeFromPassthrough_ignoresUnknownBehaviours(t *testing.T) {
	for _, text := range []string{"", "lost_inbound", "sandbox:", "sandbox:unheard of"} {
		require.Equal(t, sandbox.Outcome{}, sandbox.OutcomeFromPassthrough(orders.Order{Passthrough: &text}))
	}
	require.Equal(t, sandbox.Outcome{}, sandbox.OutcomeFromPassthrough(orders.Order{}))
	text := "sandbox:lost_inbound,repeats"
	require.Equal(t, sandbox.Outcome{Story: sandbox.LostInbound, Repeats: 1}, sandbox.OutcomeFromPassthrough(orders.Order{Passthrough: &text}))
}

func TestCatalogue_hasOneTestForEachMethod(t *testing.T) {
	b, err := sandbox.Catalogue()
	require.NoError(t, err)
	var ids []catalogue.LabTestID
	for i := range 9 {
		ids = append(ids, catalogue.LabTestID{UUID: uuid.MustParse(fmt.Sprintf("5ab0c1d2-0000-4000-8000-%012d", i))})
	}
	tests, err := b.LabTests(t.Context(), healthlab.TeamID{}, ids)
	require.NoError(t, err)
	var methods []catalogue.CollectionMethod
	for _, test := range tests {
		methods = append(methods, test.Method)
		require.True(t, test.IsActive)
		require.NotEmpty(t, test.Markers)
		require.NotNil(t, test.CommonTATDays)
	}
	require.Equal(t, catalogue.CollectionMethods(), methods)
	expected, err := b.ExpectedResults(t.Context(), tests[0].MarkerIDs())
	require.NoError(t, err)
	require.Len(t, expected, len(tests[0].Markers))
	results := simulation.Results(&orders.Order{LabTest: tests[0]}, expected, orders.SimulationFlags{}, orders.FinalResult, noon)
	for _, r := range results.Results {
		require.Regexp(t, `^[0-9]+-[0-9]$`, *r.LOINC)
		require.NotEmpty(t, *r.Unit)
	}
	accounts, err := b.Accounts(t.Context(), healthlab.TeamID{})
	require.NoError(t, err)
	require.Len(t, accounts.Platform, 2)
}
