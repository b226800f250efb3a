package pull

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

const (
	// keepNotices is how long the id of a notification is stored, to recognize a repeated one.
	keepNotices = 7 * 24 * time.Hour
)

// Listen handles a message of a provider, and schedules a fetch of the data that the message announces. When Listen
// returns, the scheduled fetch, and data in the message itself, are stored. A repeated message changes nothing, nor
// does one about an account that is not connected.
//
// Errors: NotFound (there is no such provider, or it sends no messages), Unauthenticated (the message is not the
// provider's), Invalid (the message cannot be read), Unavailable (the provider should send the message again).
func (s *Service) Listen(ctx context.Context, provider string, m linking.Message) (linking.ListenResult, error) {
	listener := s.listeners[provider]
	if listener == nil {
		return linking.ListenResult{}, fmt.Errorf("%w: provider: must be one that sends notifications", healthlab.NotFound)
	}
	m.At = s.now()
	result, err := listener.Listen(ctx, m)
	if err != nil {
		return linking.ListenResult{}, s.refuseMessage(ctx, provider, err)
	}
	return result, s.saveNotifications(ctx, Notice{Provider: provider}, &m, result.Notifications)
}

// ListenForTeam is [Service.Listen] for messages to OAuth clients of a team. of has the listeners by client id,
// as linking.ClientRegistry.Listeners returns them. The message belongs to the client whose listener accepts it,
// and concerns only connections of that client.
func (s *Service) ListenForTeam(ctx context.Context, team healthlab.TeamID, provider string, of map[string]linking.Listener, m linking.Message) (linking.ListenResult, error) {
	if len(of) == 0 {
		// The error does not reveal whether the team exists. The provider is a text of the sender, so it is not
		// logged.
		return linking.ListenResult{}, messageError(healthlab.Unauthenticated)
	}
	m.At = s.now()
	var refused error
	for _, client := range slices.Sorted(maps.Keys(of)) {
		result, err := of[client].Listen(ctx, m)
		if err == nil {
			return result, s.saveNotifications(ctx, Notice{Provider: provider, Team: team, Client: client}, &m, result.Notifications)
		}
		if refused == nil || errors.Is(refused, healthlab.Unauthenticated) {
			refused = err
		}
	}
	return linking.ListenResult{}, s.refuseMessage(ctx, provider, refused)
}

// saveNotifications stores the notifications of the message m. to has the provider and, for a team's own client, the
// team and the client.
func (s *Service) saveNotifications(ctx context.Context, to Notice, m *linking.Message, news []linking.Notification) error {
	for i, n := range news {
		if err := s.saveNotification(ctx, to, m, i, n); err != nil {
			return fmt.Errorf("store the provider's notification: %w", err)
		}
	}
	if len(news) > 0 {
		s.Wake()
	}
	return nil
}

// refuseMessage logs a refused message, and returns the error for the provider: Unauthenticated, Invalid or, for any
// other cause, Unavailable.
func (s *Service) refuseMessage(ctx context.Context, provider string, cause error) error {
	kind := healthlab.KindOf(cause)
	if kind != healthlab.Unauthenticated && kind != healthlab.Invalid {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		kind = healthlab.Unavailable
	}
	s.opts.Log.InfoContext(ctx, "message of a provider refused", "provider", provider, "kind", kind.Error())
	return messageError(kind)
}

// messageError returns the error for the sender of a message. kind is Unauthenticated, Invalid or Unavailable.
func messageError(kind healthlab.ErrorKind) error {
	msg := "the message could not be stored; send it again"
	switch kind {
	case healthlab.Unauthenticated:
		msg = "the message must have the signature or the verify token of the provider"
	case healthlab.Invalid:
		msg = "the message cannot be read"
	default:
	}
	return fmt.Errorf("%w: %s", kind, msg)
}

// saveNotification stores n, the notification with index i in the message m, and the data in it. A repeated message
// gets the same id of the notice.
func (s *Service) saveNotification(ctx context.Context, to Notice, m *linking.Message, i int, n linking.Notification) error {
	if n.ExternalUserID == "" {
		return nil
	}
	at := m.At
	id := sha256.Sum256([]byte("id " + n.ID))
	if n.ID == "" {
		sum := sha256.Sum256(m.Body)
		id = sha256.Sum256(fmt.Appendf(nil, "body %x %d", sum, i))
	}
	if to.Client != "" { // the id contains the team and the client, so that a message to another client has another id
		id = sha256.Sum256(fmt.Appendf(nil, "client %s %q %x", to.Team, to.Client, id))
	}
	to.ID, to.ExternalUserID, to.Resources, to.At = id, n.ExternalUserID, n.Resources, at
	if len(n.Data) > 0 || n.Unlinked {
		if err := s.storeMessageData(ctx, to, m.Body, &n); err != nil || len(n.Resources) == 0 {
			return err
		}
	}
	_, err := s.store.Notify(ctx, to, at.Add(-keepNotices), func(t *Task) { t.announceNews(n.Since.UTC(), at) })
	if errors.Is(err, healthlab.Invalid) { // a name that cannot be stored has no account
		return nil
	}
	return err
}

// storeMessageData stores the data of n in all connections of its account, and marks them as unlinked if n says so.
func (s *Service) storeMessageData(ctx context.Context, to Notice, body []byte, n *linking.Notification) error {
	// A notice with another id finds the connections. The message's own id is stored last, so that a message is
	// known only when it is complete.
	to.ID, to.Resources = sha256.Sum256(fmt.Appendf(nil, "find %x %d %s", to.ID, to.At.UnixMicro(), body)), nil
	var refs []Ref
	_, err := s.store.Notify(ctx, to, to.At.Add(-keepNotices), func(t *Task) {
		if !slices.Contains(refs, t.Ref) {
			refs = append(refs, t.Ref)
		}
	})
	if errors.Is(err, healthlab.Invalid) {
		return nil
	}
	for _, ref := range refs {
		if err == nil {
			err = s.storeConnectionData(ctx, ref, n)
		}
	}
	return err
}

func (s *Service) storeConnectionData(ctx context.Context, ref Ref, n *linking.Notification) error {
	u, err := s.users.User(ctx, ref.Team, ref.User)
	c := u.Connection(ref.Provider)
	if errors.Is(err, healthlab.NotFound) || err == nil && c == nil {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range n.Data {
		t := Task{Key: Key{ref, d.Resource, News}, Linked: c.LinkedAt, Client: c.Client}
		r := receiver{users: s.users, task: &t, connection: c, now: s.now}
		err := r.receive(ctx, d.Items)
		if err == nil && len(r.refused) > 0 {
			err = s.store.Quarantine(ctx, ref, mergeRefused(r.refused))
		}
		if err != nil && !errors.Is(err, healthlab.NotFound) {
			return err
		}
	}
	if n.Unlinked {
		if err := s.credentials.Unlink(ctx, ref.Team, ref.User, ref.Provider); !errors.Is(err, healthlab.NotFound) {
			return err
		}
	}
	return nil
}
