package webhook

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

const badSecret = "must be whsec_ and the base64 of 24 to 64 bytes"

// newSecret parses or generates a secret and seals it for the endpoint.
func (s *Service) newSecret(ctx context.Context, e *Endpoint, text string) (SealedSecret, error) {
	var secret Secret
	var err error
	if text == "" {
		secret, err = GenerateSecret(s.opts.Random)
	} else {
		secret, err = ParseSecret(text)
	}
	if err != nil {
		return SealedSecret{}, err
	}
	fresh := SealedSecret{ID: s.opts.NewID(), CreatedAt: s.clock()}
	fresh.Sealed, err = s.seal.Seal(ctx, []byte(secret.key), secretPlace(e, fresh.ID))
	return fresh, err
}

// Secret returns the newest signing secret of an endpoint. The read is audited. It returns NotFound if the team
// has no such endpoint, and Unavailable if the secret's key is not available.
func (s *Service) Secret(ctx context.Context, team healthlab.TeamID, id EndpointID) (Secret, error) {
	e, err := s.endpoints.Get(ctx, team, id)
	if err != nil {
		return Secret{}, fmt.Errorf("read secret: %w", err)
	}
	if len(e.Secrets) == 0 {
		return Secret{}, fmt.Errorf("read secret: %w: the endpoint has no secret", healthlab.NotFound)
	}
	s.opts.Audit(ctx, AuditedAccess{Team: team, Endpoint: id, What: "secret", At: s.clock()})
	newest := e.Secrets[0]
	b, err := s.seal.Open(ctx, newest.Sealed, secretPlace(&e, newest.ID))
	if err != nil {
		return Secret{}, fmt.Errorf("read secret: %w", err)
	}
	return Secret{key: string(b)}, nil
}

// Rotate adds a new secret to an endpoint: the given one, or a generated one if text is empty. The old secret
// still signs for 24 hours (see ServiceOptions.Grace); at most 5 secrets sign, and the oldest is removed first.
// It returns Invalid if text is not a secret, and NotFound if the team has no such endpoint.
func (s *Service) Rotate(ctx context.Context, team healthlab.TeamID, id EndpointID, text string) error {
	if text != "" {
		if _, err := ParseSecret(text); err != nil {
			var p healthlab.Problems
			p.Add("bad_secret", badSecret, "key")
			return fmt.Errorf("rotate secret: %w", p.Err())
		}
	}
	fresh, err := s.newSecret(ctx, &Endpoint{ID: id, Team: team}, text)
	if err != nil {
		return fmt.Errorf("rotate secret: %w", err)
	}
	_, err = s.endpoints.Update(ctx, team, id, func(e *Endpoint) ([]healthlab.Event, error) {
		e.Secrets = rotate(e.Secrets, fresh, s.opts.Grace)
		e.UpdatedAt = fresh.CreatedAt
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("rotate secret: %w", err)
	}
	return nil
}

// rotate returns at most maxSecrets secrets: fresh as the first one, then the old ones that have not expired. The
// secret that was first expires after grace.
func rotate(secrets []SealedSecret, fresh SealedSecret, grace time.Duration) []SealedSecret {
	at := fresh.CreatedAt
	out := []SealedSecret{fresh}
	for _, old := range secrets {
		if old.ExpiresAt.IsZero() {
			old.ExpiresAt = at.Add(grace)
		}
		if old.active(at) && len(out) < maxSecrets {
			out = append(out, old)
		}
	}
	return out
}

// Revoke removes the old secrets of an endpoint at once; the newest stays. It returns NotFound if the team has
// no such endpoint.
func (s *Service) Revoke(ctx context.Context, team healthlab.TeamID, id EndpointID) error {
	at := s.clock()
	_, err := s.endpoints.Update(ctx, team, id, func(e *Endpoint) ([]healthlab.Event, error) {
		e.Secrets = e.Secrets[:min(1, len(e.Secrets))]
		e.UpdatedAt = at
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("revoke secrets: %w", err)
	}
	return nil
}

// Headers are the custom headers of an endpoint.
type Headers struct {
	// Values are the headers whose values may be shown.
	Values map[string]string
	// Sensitive are the names of headers that look like credentials, sorted; their values are not shown.
	Sensitive []string
}

// Headers returns the custom headers of an endpoint. It returns NotFound if the team has no such endpoint.
func (s *Service) Headers(ctx context.Context, team healthlab.TeamID, id EndpointID) (Headers, error) {
	e, err := s.endpoints.Get(ctx, team, id)
	if err != nil {
		return Headers{}, fmt.Errorf("read headers: %w", err)
	}
	out := Headers{Values: map[string]string{}, Sensitive: []string{}}
	for _, h := range e.Headers {
		if sensitiveHeader(h.Name) {
			out.Sensitive = append(out.Sensitive, h.Name)
			continue
		}
		b, err := s.seal.Open(ctx, h.Sealed, headerPlace(&e, h.Name))
		if err != nil {
			return Headers{}, fmt.Errorf("read headers: %w", err)
		}
		out.Values[h.Name] = string(b)
	}
	return out, nil
}

// SetHeaders replaces all custom headers of an endpoint. It returns Invalid with every problem; a path is the
// position in the sorted names. It returns NotFound if the team has no such endpoint.
func (s *Service) SetHeaders(ctx context.Context, team healthlab.TeamID, id EndpointID, headers map[string]string) error {
	names := slices.Sorted(maps.Keys(headers))
	if err := checkHeaders(headers, names).Err(); err != nil {
		return fmt.Errorf("set headers: %w", err)
	}
	place := Endpoint{ID: id, Team: team}
	sealed := make([]SealedHeader, 0, len(names))
	for _, name := range names {
		h := SealedHeader{Name: http.CanonicalHeaderKey(name)}
		var err error
		if h.Sealed, err = s.seal.Seal(ctx, []byte(headers[name]), headerPlace(&place, h.Name)); err != nil {
			return fmt.Errorf("set headers: %w", err)
		}
		sealed = append(sealed, h)
	}
	at := s.clock()
	_, err := s.endpoints.Update(ctx, team, id, func(e *Endpoint) ([]healthlab.Event, error) {
		e.Headers, e.UpdatedAt = sealed, at
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("set headers: %w", err)
	}
	return nil
}

// Message returns a stored message with its body. The read is audited. It returns NotFound if the team has no
// such message.
func (s *Service) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (Message, error) {
	m, err := s.log.Message(ctx, team, event)
	if err != nil {
		return Message{}, fmt.Errorf("read message: %w", err)
	}
	s.opts.Audit(ctx, AuditedAccess{Team: team, Event: event, What: "message", At: s.clock()})
	return m, nil
}
