package orderstest_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

// brokenLab is a laboratory with some of its methods replaced.
type brokenLab struct {
	exchange.LabBackend
	submit  func(context.Context, exchange.Submission) (exchange.Accepted, error)
	cancel  func(context.Context, healthlab.TeamID, orders.OrderID) error
	updates func(context.Context, string, int) (exchange.Batch, error)
}

func (l *brokenLab) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	if l.submit != nil {
		return l.submit(ctx, s)
	}
	return l.LabBackend.Submit(ctx, s)
}

func (l *brokenLab) Cancel(ctx context.Context, team healthlab.TeamID, id orders.OrderID) error {
	if l.cancel != nil {
		return l.cancel(ctx, team, id)
	}
	return l.LabBackend.Cancel(ctx, team, id)
}

func (l *brokenLab) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	if l.updates != nil {
		return l.updates(ctx, cursor, n)
	}
	return l.LabBackend.Updates(ctx, cursor, n)
}

// worksBadly runs the suite on laboratories that were broken in one way.
func worksBadly(how func(*brokenLab)) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunLabBackend(t, func(testing.TB) orderstest.LabHarness {
			var passed atomic.Int64
			now := func() time.Time {
				return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC).Add(time.Duration(passed.Load()))
			}
			l := &brokenLab{LabBackend: sandbox.NewLab(&sandbox.LabOptions{Now: now})}
			how(l)
			return orderstest.LabHarness{Lab: l, Pass: func() { passed.Add(int64(6 * time.Hour)) }}
		})
	}
}

// reports changes the messages of a laboratory before they are read.
func reports(change func([]exchange.Message)) func(*testing.T) {
	return worksBadly(func(l *brokenLab) {
		l.updates = func(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
			b, err := l.LabBackend.Updates(ctx, cursor, n)
			b.Messages = slices.Clone(b.Messages)
			change(b.Messages)
			return b, err
		}
	})
}

var brokenLabs = []conformance.Broken{
	{Name: "answers a repeated order anew", Suite: worksBadly(func(l *brokenLab) {
		l.submit = func(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
			a, err := l.LabBackend.Submit(ctx, s)
			a.SampleID = uuid.NewString()
			return a, err
		}
	}), Subtest: "Submit/Again"},
	{Name: "places a repeated order twice", Suite: worksBadly(func(l *brokenLab) {
		first := map[orders.OrderID]exchange.Accepted{}
		l.submit = func(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
			if a, ok := first[s.Order.ID]; ok {
				s.Order.ID = orders.OrderID{UUID: uuid.New()}
				_, err := l.LabBackend.Submit(ctx, s)
				return a, err
			}
			a, err := l.LabBackend.Submit(ctx, s)
			first[s.Order.ID] = a
			return a, err
		}
	}), Subtest: "Submit/Again"},
	{Name: "gives all orders one specimen", Suite: worksBadly(func(l *brokenLab) {
		l.submit = func(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
			a, err := l.LabBackend.Submit(ctx, s)
			a.SampleID = "1"
			return a, err
		}
	}), Subtest: "Submit/TwoOrders"},
	{Name: "takes an order without its caller", Suite: worksBadly(func(l *brokenLab) {
		l.submit = func(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
			return l.LabBackend.Submit(context.WithoutCancel(ctx), s)
		}
	}), Subtest: "Submit/ContextEnded"},
	{Name: "names another team", Suite: reports(func(list []exchange.Message) {
		for i := range list {
			list[i].Team = healthlab.TeamID{UUID: uuid.New()}
		}
	}), Subtest: "Updates/NameTheOrder"},
	{Name: "names another order", Suite: reports(func(list []exchange.Message) {
		for i := range list {
			list[i].Order = orders.OrderID{UUID: uuid.New()}
		}
	}), Subtest: "Updates/NameTheOrder"},
	{Name: "reports results of nobody", Suite: reports(func(list []exchange.Message) {
		for i := range list {
			list[i].Patient = nil
		}
	}), Subtest: "Updates/NameThePatient"},
	{Name: "decides whose the results are", Suite: reports(func(list []exchange.Message) {
		for i := range list {
			list[i].Attached = true
		}
	}), Subtest: "Updates/NameThePatient"},
	{Name: "reports results of another person", Suite: reports(func(list []exchange.Message) {
		for i := range list {
			list[i].Patient = &orders.ReportedPatient{FirstName: "Eve", LastName: "Poe"}
		}
	}), Subtest: "Updates/NameThePatient"},
	{Name: "names all messages alike", Suite: reports(func(list []exchange.Message) {
		for i := range list {
			list[i].ID = "message"
		}
	}), Subtest: "Updates/NameTheOrder"},
	{Name: "reports the newest first", Suite: reports(func(list []exchange.Message) {
		for i := range list {
			list[i].At = list[i].At.Add(-time.Duration(i) * 1000 * time.Hour)
		}
	}), Subtest: "Updates/NameTheOrder"},
	{Name: "reports what has no name", Suite: reports(func(list []exchange.Message) {
		for i := range list {
			list[i].On = "something_happened"
		}
	}), Subtest: "Updates/NameTheOrder"},
	{Name: "says nothing", Suite: worksBadly(func(l *brokenLab) {
		l.updates = func(_ context.Context, cursor string, _ int) (exchange.Batch, error) {
			return exchange.Batch{Cursor: cursor}, nil
		}
	}), Subtest: "Updates/NameTheOrder"},
	{Name: "forgets what was read", Suite: worksBadly(func(l *brokenLab) {
		read := map[string]bool{}
		l.updates = func(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
			b, err := l.LabBackend.Updates(ctx, cursor, n)
			b.Messages = slices.DeleteFunc(slices.Clone(b.Messages), func(m exchange.Message) bool { return read[m.ID] })
			for _, m := range b.Messages {
				read[m.ID] = true
			}
			return b, err
		}
	}), Subtest: "Updates/SameCursorSameMessages"},
	{Name: "moves its cursor for nothing", Suite: worksBadly(func(l *brokenLab) {
		l.updates = func(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
			known := strings.TrimRight(cursor, "x")
			b, err := l.LabBackend.Updates(ctx, known, n)
			if len(b.Messages) == 0 {
				b.Cursor = cursor + "x"
			}
			return b, err
		}
	}), Subtest: "Updates/SameCursorSameMessages"},
	{Name: "sends more than was asked for", Suite: worksBadly(func(l *brokenLab) {
		l.updates = func(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
			return l.LabBackend.Updates(ctx, cursor, n+1)
		}
	}), Subtest: "Updates/SameCursorSameMessages"},
	{Name: "goes on with what was cancelled", Suite: worksBadly(func(l *brokenLab) {
		l.cancel = func(context.Context, healthlab.TeamID, orders.OrderID) error { return nil }
	}), Subtest: "Cancel/Again"},
	{Name: "refuses to cancel twice", Suite: worksBadly(func(l *brokenLab) {
		cancelled := map[orders.OrderID]bool{}
		l.cancel = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) error {
			if cancelled[id] {
				return healthlab.Precondition
			}
			cancelled[id] = true
			return l.LabBackend.Cancel(ctx, team, id)
		}
	}), Subtest: "Cancel/Again"},
	{Name: "cancels only what it knows", Suite: worksBadly(func(l *brokenLab) {
		known := map[orders.OrderID]bool{}
		l.submit = func(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
			known[s.Order.ID] = true
			return l.LabBackend.Submit(ctx, s)
		}
		l.cancel = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) error {
			if !known[id] {
				return healthlab.NotFound
			}
			return l.LabBackend.Cancel(ctx, team, id)
		}
	}), Subtest: "Cancel/NeverSubmitted"},
}

// The laboratory from which the broken ones are made passes the suite.
func TestBrokenLabs_unbrokenBasePassesTheSuite(t *testing.T) { worksBadly(func(*brokenLab) {})(t) }
