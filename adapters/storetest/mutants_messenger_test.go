package storetest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/orders"
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
		storetest.RunMessenger(t, func(testing.TB) storetest.MessengerHarness {
			s := &messenger{
				sent: map[string]int{}, seen: map[string]bool{},
				key:    func(m orders.PatientMessage) string { return m.ID.String() },
				outage: func(orders.PatientMessage) error { return healthlab.Unavailable },
			}
			broken(s)
			return storetest.MessengerHarness{
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

func TestMessengerUnbroken(t *testing.T) { messengers(func(*messenger) {})(t) }

var messengerMutants = []mutant{
	{"sends repeats", messengers(func(s *messenger) {
		s.key = func(orders.PatientMessage) string { return uuid.NewString() }
	}), "Repeat"},
	{"tells messages apart by address", messengers(func(s *messenger) {
		s.key = func(m orders.PatientMessage) string { return m.To }
	}), "EqualText"},
	{"sends after its context ended", messengers(func(s *messenger) { s.ignoreContext = true }), "ContextEnds"},
	{"records a message before it is sent", messengers(func(s *messenger) { s.markFirst = true }), "Outage"},
	{"sends no e-mail", messengers(func(s *messenger) { s.noEmail = true }), "Channels"},
	{"requires a name", messengers(func(s *messenger) { s.needName = true }), "WithoutName"},
	{"reports an outage as Invalid", messengers(func(s *messenger) {
		s.outage = func(orders.PatientMessage) error { return healthlab.Invalid }
	}), "Outage"},
	{"names the address in an error", messengers(func(s *messenger) {
		s.outage = func(m orders.PatientMessage) error { return fmt.Errorf("%w: %s", healthlab.Unavailable, m.To) }
	}), "Outage"},
}
