package pull

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// Notice says that a provider has something new.
type Notice struct {
	// ID is made of the provider's own name for it.
	ID       [32]byte
	Provider string
	// ExternalUserID is the account, byte for byte.
	ExternalUserID string
	// Resources are slugs; empty means all.
	Resources []string
	At        time.Time
}

const (
	// keepNotices is for how long a notice is known again.
	keepNotices = 7 * 24 * time.Hour
	// maxReach is how far back a notice makes us look.
	maxReach = 90 * 24 * time.Hour
)

// Listen takes a message that a provider sent by itself, and lets what it announces be
// fetched next. When it returns, that is kept: it happens even if this process dies. What
// was announced before, or is of an account that nobody has connected, changes nothing.
//
// Faults: NotFound (there is no such provider, or it sends nothing), Unauthenticated (the
// message is not the provider's), Invalid (it makes no sense), Unavailable (the provider
// should send it again).
func (s *Service) Listen(ctx context.Context, provider string, m linking.Message) (linking.Heard, error) {
	listener := s.listeners[provider]
	if listener == nil {
		return linking.Heard{}, fmt.Errorf("%w: no such provider, or it sends nothing", healthlab.NotFound)
	}
	m.At = s.now()
	heard, err := listener.Listen(ctx, m)
	if err != nil {
		return linking.Heard{}, s.notHeard(ctx, provider, err)
	}
	for i, n := range heard.News {
		if err := s.announced(ctx, provider, &m, i, n); err != nil {
			return linking.Heard{}, fmt.Errorf("keep what a provider announced: %w", err)
		}
	}
	if len(heard.News) > 0 {
		s.Wake()
	}
	return heard, nil
}

// notHeard says what a listener's error means to the sender.
func (s *Service) notHeard(ctx context.Context, provider string, cause error) error {
	kind := healthlab.KindOf(cause)
	if kind != healthlab.Unauthenticated && kind != healthlab.Invalid {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		kind = healthlab.Unavailable
	}
	s.opts.Log.InfoContext(ctx, "message of a provider refused", "provider", provider, "kind", kind.Error())
	return fmt.Errorf("%w: the message was not taken", kind)
}

// announced keeps one thing that is new.
func (s *Service) announced(ctx context.Context, provider string, m *linking.Message, i int, n linking.Announced) error {
	if n.ExternalUserID == "" {
		return nil
	}
	at := m.At
	id := sha256.Sum256([]byte("id " + n.ID))
	if n.ID == "" {
		sum := sha256.Sum256(m.Body)
		id = sha256.Sum256(fmt.Appendf(nil, "body %x %d", sum, i))
	}
	_, err := s.store.Notify(ctx, Notice{
		ID: id, Provider: provider, ExternalUserID: n.ExternalUserID, Resources: n.Resources, At: at,
	}, at.Add(-keepNotices), func(t *Task) { t.announce(n.Since.UTC(), at) })
	if errors.Is(err, healthlab.Invalid) { // a name that no store takes is nobody's
		return nil
	}
	return err
}

// announce makes news be looked for at once, and as far back as since.
func (t *Task) announce(since, now time.Time) {
	t.Announced, t.Due = now, earlier(t.Due, now)
	if since.IsZero() {
		return
	}
	if since = later(since, now.Add(-maxReach)); t.Reach.IsZero() || since.Before(t.Reach) {
		t.Reach = since
	}
}

// hurried reports whether news were announced that no run has looked for yet.
func (t *Task) hurried() bool { return t.Announced.After(t.StartedAt) }
