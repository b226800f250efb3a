package healthdata

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Names of the event types of connections.
const (
	EventConnectionCreated = "provider.connection.created"
	EventConnectionError   = "provider.connection.error"
	EventConnectionDeleted = "provider.connection.deleted"
)

// connectionEventTypes lists the events about connections. All of them are [healthlab.Ordered] by [ConnectionKey], so
// that the events of one connection arrive in order.
func connectionEventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{
			Name: EventConnectionCreated, Mode: healthlab.Ordered, Data: ConnectionCreated{},
			Doc: "A user has connected a provider, or connected it again.",
		},
		{
			Name: EventConnectionError, Mode: healthlab.Ordered, Data: ConnectionFailed{},
			Doc: "A connection has failed for good and needs the user to link again; sent once.",
		},
		{
			Name: EventConnectionDeleted, Mode: healthlab.Ordered, Data: ConnectionDeleted{},
			Doc: "A connection was removed. The data that it brought stays.",
		},
	}
}

// ConnectionCreated is the payload of [EventConnectionCreated].
type ConnectionCreated struct {
	UserID   healthlab.UserID `json:"user_id"`
	Provider ProviderName     `json:"provider"`
	// Source is the same as Provider, under its older name.
	Source ProviderName `json:"source"`
	// ExternalUserID is the provider's id of the person; null if the provider has none, as for on-device stores.
	ExternalUserID *string `json:"external_user_id"`
	// ResourceAvailability says for each resource whether data will arrive. It is never null in JSON.
	ResourceAvailability map[string]Availability `json:"resource_availability"`
}

// ConnectionFailed is the payload of [EventConnectionError].
type ConnectionFailed struct {
	UserID healthlab.UserID `json:"user_id"`
	// Provider is the slug of the provider.
	Provider string `json:"provider"`
	// ErrorType is one of the Failure constants, such as [FailureTokenRefresh]. Later versions may add values.
	ErrorType string `json:"error_type"`
	// Message and ErrorDetails are texts for people.
	Message      string `json:"message"`
	ErrorDetails string `json:"error_details"`
}

// ConnectionDeleted is the payload of [EventConnectionDeleted].
type ConnectionDeleted struct {
	UserID   healthlab.UserID `json:"user_id"`
	Provider ProviderName     `json:"provider"`
	// Source is the same as Provider, under its older name.
	Source ProviderName `json:"source"`
}

// ConnectionKey returns the Key of the events about a user's connection. provider is the slug of the provider.
func ConnectionKey(user healthlab.UserID, provider string) string {
	return user.String() + "/connection/" + provider
}

// NewConnection describes the source that is connected to a user.
type NewConnection struct {
	// Provider is the slug of a configured provider.
	Provider string
	// ExternalUserID is the provider's id of the person; nil if the provider has none.
	ExternalUserID *string
	// Scopes are the scopes that the person granted, by the provider's names; nil for a provider without scopes.
	Scopes []string
	// Demo reports whether the data of the connection is generated.
	Demo bool
	// Client is the id of the team's own OAuth client that connects the source; empty for the client of the deployment.
	Client string
	// Consent is the consent that the person gives by connecting. Connect sets its Provider and GrantedAt. Nil means
	// that someone else, such as the team, connects the source. Connect then fails with [RuleConsentWithdrawn] if the
	// person has withdrawn the newest consent for the provider.
	Consent *Consent
}

// LogValue contains neither the external account nor the scopes.
func (n NewConnection) LogValue() slog.Value {
	return slog.GroupValue(slog.String("provider", n.Provider), slog.Bool("demo", n.Demo))
}

// Connections connects, pauses and removes the sources of users, and records their consents. [Service.Connections]
// returns it. It is safe for concurrent use.
type Connections struct {
	users     liveUsers
	providers *Providers
	opts      *Options
}

// Connections returns the methods for the sources and consents of users.
func (s *Service) Connections() *Connections { return &Connections{s.users, s.providers, &s.opts} }

// Connect connects a source that sends its data to the service: an on-device store, a device of the mobile SDK, or a
// team's own data ([SlugManual]). If the connection is [Connected] already, Connect changes nothing and sends no event.
// It reconnects a source that failed, was paused or was removed. It refuses cloud providers: a person links those, see
// [Connections.ConnectLinked].
//
// [healthlab.Invalid] if the provider is not configured, or is a cloud provider; [healthlab.NotFound] if the team has
// no such user; a [*healthlab.RuleError] of type [RuleInvalidRequest] if a demo connection is not allowed here, or if
// the user would have a demo connection and a real one; a RuleError of type [RuleConsentWithdrawn] if n.Consent is nil
// and the person has withdrawn the consent.
func (s *Connections) Connect(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, n NewConnection) (User, error) {
	p, err := s.connectable(n)
	if err == nil && p.Class == classCloud {
		err = providerProblem("not_pushed", "must not be a cloud provider: a person links it with a link token")
	}
	if err != nil {
		return User{}, fmt.Errorf("connect: %w", err)
	}
	e := s.connectionEvent(EventConnectionCreated)
	u, err := s.users.updateLive(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		if c := u.Connection(n.Provider); c != nil && c.Status == Connected {
			return nil, errUnchanged
		}
		return u.establish(p, n, e)
	})
	if errors.Is(err, errUnchanged) {
		u, err = s.users.live(ctx, team, id)
	}
	if err != nil {
		return User{}, fmt.Errorf("connect: %w", err)
	}
	return s.providers.present(u), nil
}

// ConnectLinked records that a user has linked a provider of any class, for the first time or again, and sends an
// event. It is the last step of linking. The errors are those of [Connections.Connect], except that cloud providers are
// accepted.
func (s *Connections) ConnectLinked(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, n NewConnection) (User, error) {
	change, err := s.ConnectingLinked(n)
	if err != nil {
		return User{}, err
	}
	u, err := s.users.Update(ctx, team, id, change)
	if err != nil {
		return User{}, fmt.Errorf("establish connection: %w", err)
	}
	return s.providers.present(u), nil
}

// ConnectingLinked returns the function that changes a user as [Connections.ConnectLinked] does, for callers that write
// the user and their own rows in one transaction. The transaction may run the function again for the same user. The id
// of the event is fixed, so use the function for one user only.
//
// ConnectingLinked returns [healthlab.Invalid] and the [*healthlab.RuleError] about demo connections that are not
// allowed, as ConnectLinked does. The function returns [healthlab.NotFound] for a deleted user, and the other
// RuleErrors of ConnectLinked.
func (s *Connections) ConnectingLinked(n NewConnection) (func(*User) ([]healthlab.Event, error), error) {
	p, err := s.connectable(n)
	if err != nil {
		return nil, fmt.Errorf("establish connection: %w", err)
	}
	e := s.connectionEvent(EventConnectionCreated)
	return func(u *User) ([]healthlab.Event, error) {
		if !u.Live() {
			return nil, noUser()
		}
		return u.establish(p, n, e)
	}, nil
}

// Disconnect removes a connection and sends an event. Stored data stays. The app of an on-device store may connect the
// store again, with [Connections.Connect] or with its next upload (see [TeamSettings].ExplicitConnect).
//
// [healthlab.Invalid] if the provider is not configured; [healthlab.NotFound] if the team has no such user, or the user
// has not connected the provider.
func (s *Connections) Disconnect(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, provider string) error {
	change, err := s.Disconnecting(provider)
	if err != nil {
		return err
	}
	_, err = s.users.Update(ctx, team, id, change)
	if err != nil {
		return fmt.Errorf("disconnect: %w", err)
	}
	return nil
}

// Disconnecting returns the function that changes a user as [Connections.Disconnect] does, for callers that write the
// user and their own rows in one transaction. The transaction may run the function again for the same user.
//
// Disconnecting returns [healthlab.Invalid] if the provider is not configured. The function returns
// [healthlab.NotFound] if the user is deleted or has not connected the provider.
func (s *Connections) Disconnecting(provider string) (func(*User) ([]healthlab.Event, error), error) {
	p, err := s.providers.configured(provider)
	if err != nil {
		return nil, fmt.Errorf("disconnect: %w", err)
	}
	e := s.connectionEvent(EventConnectionDeleted)
	return func(u *User) ([]healthlab.Event, error) {
		c := u.Connection(provider)
		if !u.Live() || c == nil || c.Status == Deregistered {
			return nil, notConnected(provider)
		}
		c.deregister()
		data, err := json.Marshal(ConnectionDeleted{UserID: u.ID, Provider: p.display(), Source: p.display()})
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		e.Team, e.User, e.Key, e.Data = u.Team, u.ID, ConnectionKey(u.ID, provider), data
		return []healthlab.Event{e}, nil
	}, nil
}

func notConnected(provider string) error {
	return fmt.Errorf("%w: the user is deleted, or has not connected %s", healthlab.NotFound, provider)
}

// Pause sets a [Connected] connection to the status [Paused], until the person links the provider again. Pause keeps
// the credential. It sends no event, and does not change a connection of another status. The errors are those of
// [Connections.Disconnect].
func (s *Connections) Pause(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, provider string) error {
	change, err := s.Pausing(provider)
	if err != nil {
		return err
	}
	_, err = s.users.Update(ctx, team, id, change)
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	return nil
}

// Pausing returns the function that changes a user as [Connections.Pause] does, for callers that write the user and
// their own rows in one transaction. The errors are those of [Connections.Disconnecting].
func (s *Connections) Pausing(provider string) (func(*User) ([]healthlab.Event, error), error) {
	if _, err := s.providers.configured(provider); err != nil {
		return nil, fmt.Errorf("pause: %w", err)
	}
	return func(u *User) ([]healthlab.Event, error) {
		c := u.Connection(provider)
		if !u.Live() || c == nil || c.Status == Deregistered {
			return nil, notConnected(provider)
		}
		if c.Status == Connected {
			c.Status = Paused
			c.resetDue()
		}
		return nil, nil
	}, nil
}

// establish adds or renews the user's connection to p. It returns e with the user, the key and the payload filled in.
// It returns a [*healthlab.RuleError] if the user would have demo and real connections, or if n.Consent is nil and the
// person has withdrawn the consent.
func (u *User) establish(p *Provider, n NewConnection, e healthlab.Event) ([]healthlab.Event, error) {
	for _, c := range u.Connections {
		if c.Status != Deregistered && c.Demo != n.Demo {
			return nil, &healthlab.RuleError{
				Type: RuleInvalidRequest,
				Msg:  "a user cannot have demo connections and real ones; remove the user's connections first, or use another user",
			}
		}
	}
	if err := u.recordConsent(n.Consent, n.Provider, healthlab.At(e.At)); err != nil {
		return nil, err
	}
	u.connect(Connection{
		Provider: n.Provider, Status: Connected, CreatedOn: e.At, LinkedAt: e.At, Due: e.At,
		ExternalUserID: n.ExternalUserID, Scopes: slices.Clone(n.Scopes), Demo: n.Demo, Client: n.Client,
	})
	data, err := json.Marshal(ConnectionCreated{
		UserID: u.ID, Provider: p.display(), Source: p.display(),
		ExternalUserID: n.ExternalUserID, ResourceAvailability: p.Availability(n.Scopes),
	})
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	e.Team, e.User, e.Key, e.Data = u.Team, u.ID, ConnectionKey(u.ID, n.Provider), data
	return []healthlab.Event{e}, nil
}

func (s *Connections) connectionEvent(name string) healthlab.Event {
	return healthlab.Event{ID: s.opts.NewID(), Type: name, At: s.opts.now().Time}
}

func (c *Connection) deregister() {
	c.Status, c.Scopes, c.Failure, c.Client = Deregistered, nil, nil, ""
	c.resetDue()
}

func (c *Connection) resetDue() {
	c.Due = time.Time{}
	if c.Demo {
		c.Due = c.CreatedOn.Add(DemoLife)
	}
}

// connectable returns the configured provider of n. It returns a [*healthlab.RuleError] if n is a demo connection that
// the environment or the provider does not allow.
func (s *Connections) connectable(n NewConnection) (*Provider, error) {
	p, err := s.providers.configured(n.Provider)
	if err == nil && n.Demo && (s.opts.Environment != healthlab.Sandbox || !p.Demo) {
		err = &healthlab.RuleError{
			Type: RuleInvalidRequest,
			Msg:  "demo connections are only for the sandbox, and for the providers that GET /v2/providers?demo=true lists",
		}
	}
	return p, err
}

func (p *Providers) configured(slug string) (*Provider, error) {
	if p := p.Get(slug); p != nil {
		return p, nil
	}
	return nil, providerProblem("unknown_provider", p.Expected(slug))
}

func providerProblem(code, msg string) error {
	var p healthlab.Problems
	p.Add(code, msg, "provider")
	return p.Err()
}

// ConnectionView is a connection as the API shows it: its status, and which data will arrive.
type ConnectionView struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
	// Logo is a URL; empty if the provider has none.
	Logo string `json:"logo"`
	// CreatedOn is when the source was connected, or connected again after its last removal.
	CreatedOn healthlab.Time   `json:"created_on"`
	Status    ConnectionStatus `json:"status"`
	// ExternalUserID is the provider's id of the person; null if the provider has none.
	ExternalUserID *string `json:"external_user_id"`
	// ErrorDetails is null unless the status is error.
	ErrorDetails *ConnectionErrorDetails `json:"error_details"`
	// ResourceAvailability says for each resource whether data will arrive. It is never null in JSON, and empty
	// for a provider that is no longer configured.
	ResourceAvailability map[string]Availability `json:"resource_availability"`
}

// ConnectionErrorDetails is the reason why a connection failed permanently.
type ConnectionErrorDetails struct {
	// ErrorType is one of the Failure constants, such as [FailureTokenRefresh]. Later versions may add values.
	ErrorType string `json:"error_type"`
	// ErrorMessage is a text for people.
	ErrorMessage string         `json:"error_message"`
	ErroredAt    healthlab.Time `json:"errored_at"`
}

// List returns the connections of a user that were not removed, the oldest first.
// [healthlab.NotFound] if the team has no such user.
func (s *Connections) List(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) ([]ConnectionView, error) {
	u, err := s.users.live(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("connections: %w", err)
	}
	out := []ConnectionView{}
	for _, c := range u.Connections {
		if c.Status == Deregistered {
			continue
		}
		name := s.providers.name(c.Provider)
		v := ConnectionView{
			Name: name.Name, Slug: name.Slug, Logo: name.Logo, CreatedOn: healthlab.At(c.CreatedOn), Status: c.Status,
			ExternalUserID: c.ExternalUserID, ResourceAvailability: map[string]Availability{},
		}
		if f := c.Failure; f != nil {
			v.ErrorDetails = &ConnectionErrorDetails{ErrorType: f.Type, ErrorMessage: f.Message, ErroredAt: healthlab.At(f.At)}
		}
		if p := s.providers.Get(c.Provider); p != nil {
			if c.Status == Connected && p.Class == classCloud && u.Closed(s.opts.now().Time) {
				v.Status = Paused
			}
			v.ResourceAvailability = p.Availability(c.Scopes)
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b ConnectionView) int {
		return cmp.Or(a.CreatedOn.Compare(b.CreatedOn.Time), cmp.Compare(a.Slug, b.Slug))
	})
	return out, nil
}

// Fail records that a provider refuses access permanently. The connection has the status [ConnectionError]
// until the person links again, and one event is sent. If the connection is not [Connected], Fail changes
// nothing and sends no event.
//
// [healthlab.Invalid] if the provider is not configured; [healthlab.NotFound] if the team has no such user, or the user
// has not connected the provider.
func (s *Connections) Fail(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, provider string, f ConnectionFailure) error {
	change, err := s.Failing(provider, f)
	if err != nil {
		return fmt.Errorf("fail connection: %w", err)
	}
	_, err = s.users.Update(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		events, err := change(u)
		if err == nil && events == nil {
			err = errUnchanged
		}
		return events, err
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return fmt.Errorf("fail connection: %w", err)
	}
	return nil
}

// Failing returns the function that changes a user as [Connections.Fail] does, for callers that write the user and
// their own rows in one transaction. The transaction may run the function again for the same user.
//
// Failing returns [healthlab.Invalid] if the provider is not configured. The function returns [healthlab.NotFound] if
// the user is deleted or has not connected the provider, and no event if it changes nothing.
func (s *Connections) Failing(provider string, f ConnectionFailure) (func(*User) ([]healthlab.Event, error), error) {
	if _, err := s.providers.configured(provider); err != nil {
		return nil, err
	}
	if f.Type == "" {
		f.Type = FailureUnknown
	}
	e := s.connectionEvent(EventConnectionError)
	f.At = e.At
	return func(u *User) ([]healthlab.Event, error) {
		c := u.Connection(provider)
		switch {
		case !u.Live() || c == nil || c.Status == Deregistered:
			return nil, notConnected(provider)
		case c.Status != Connected:
			return nil, nil
		}
		why := f
		c.Status, c.Failure, c.Due = ConnectionError, &why, time.Time{}
		data, err := json.Marshal(ConnectionFailed{
			UserID: u.ID, Provider: provider, ErrorType: f.Type, Message: f.Message, ErrorDetails: f.Details,
		})
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		e := e
		e.Team, e.User, e.Key, e.Data = u.Team, u.ID, ConnectionKey(u.ID, provider), data
		return []healthlab.Event{e}, nil
	}, nil
}
