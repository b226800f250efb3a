package orderstest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

// messenger counts messages by address; its fields break it.
type messenger struct {
	mu   sync.Mutex
	sent map[string]int
	seen map[string]bool
	down int

	key           func(m orders.PatientMessage) string // that tells repeats
	ignoreContext bool
	markFirst     bool // records the ID before the message is sent
	noEmail       bool
	needName      bool
	outage        func(m orders.PatientMessage) error
}

func (s *messenger) Send(ctx context.Context, m orders.PatientMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.key(m)
	if s.seen[key] {
		return nil
	}
	if s.markFirst {
		s.seen[key] = true
	}
	if s.needName && m.FirstName == "" {
		return healthlab.Invalid
	}
	if err := ctx.Err(); err != nil && !s.ignoreContext {
		return err
	}
	if s.down > 0 {
		s.down--
		return s.outage(m)
	}
	s.seen[key] = true
	if m.Channel != orders.Email || !s.noEmail {
		s.sent[m.To]++
	}
	return nil
}

// messengers returns the suite over messengers broken in one way.
func messengers(broken func(*messenger)) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunMessenger(t, func(testing.TB) orderstest.MessengerHarness {
			s := &messenger{
				sent: map[string]int{}, seen: map[string]bool{},
				key:    func(m orders.PatientMessage) string { return m.ID.String() },
				outage: func(orders.PatientMessage) error { return healthlab.Unavailable },
			}
			broken(s)
			return orderstest.MessengerHarness{
				Messenger: s,
				Sent: func(_ testing.TB, to string) int {
					s.mu.Lock()
					defer s.mu.Unlock()
					return s.sent[to]
				},
				Fail: func(n int) { s.down = n },
			}
		})
	}
}

func TestBrokenMessengers_unbrokenBasePassesTheSuite(t *testing.T) {
	messengers(func(*messenger) {})(t)
}

var brokenMessengers = []conformance.Broken{
	{Name: "sends repeats", Suite: messengers(func(s *messenger) {
		s.key = func(orders.PatientMessage) string { return uuid.NewString() }
	}), Subtest: "Repeat"},
	{Name: "tells messages apart by address", Suite: messengers(func(s *messenger) {
		s.key = func(m orders.PatientMessage) string { return m.To }
	}), Subtest: "EqualText"},
	{Name: "sends after its context ended", Suite: messengers(func(s *messenger) { s.ignoreContext = true }), Subtest: "ContextEnds"},
	{Name: "records a message before it is sent", Suite: messengers(func(s *messenger) { s.markFirst = true }), Subtest: "Outage"},
	{Name: "sends no e-mail", Suite: messengers(func(s *messenger) { s.noEmail = true }), Subtest: "Channels"},
	{Name: "requires a name", Suite: messengers(func(s *messenger) { s.needName = true }), Subtest: "WithoutName"},
	{Name: "reports an outage as Invalid", Suite: messengers(func(s *messenger) {
		s.outage = func(orders.PatientMessage) error { return healthlab.Invalid }
	}), Subtest: "Outage"},
	{Name: "names the address in an error", Suite: messengers(func(s *messenger) {
		s.outage = func(m orders.PatientMessage) error { return fmt.Errorf("%w: %s", healthlab.Unavailable, m.To) }
	}), Subtest: "Outage"},
}
