package httpapi

import (
	"net/http"
	"slices"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// webhookHeadersOut are the custom headers of an endpoint, without the values of those
// that look like credentials.
type webhookHeadersOut struct {
	Headers   map[string]string `json:"headers"`
	Sensitive []string          `json:"sensitive"`
}

// webhookHeadersIn is the body that replaces them.
type webhookHeadersIn struct {
	Headers map[string]string `json:"headers"`
}

// webhookSecretOut is the secret of an endpoint.
type webhookSecretOut struct {
	Key string `json:"key"`
}

// webhookSecretIn is the body that rotates it; null makes a new one.
type webhookSecretIn struct {
	Key *string `json:"key"`
}

func (a api) readWebhookHeaders(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	team, err := m.open()
	if err != nil {
		return err
	}
	h, err := a.Webhooks.Headers(r.Context(), team, id)
	if err != nil {
		return err
	}
	out := webhookHeadersOut{Headers: h.Values, Sensitive: slices.Sorted(slices.Values(h.Sensitive))}
	if out.Headers == nil {
		out.Headers = map[string]string{}
	}
	if out.Sensitive == nil {
		out.Sensitive = []string{}
	}
	return wire.JSON(w, http.StatusOK, out)
}

func (a api) putWebhookHeaders(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	var body webhookHeadersIn
	m.Body(&body)
	team, err := m.open()
	if err != nil {
		return err
	}
	if err := a.Webhooks.SetHeaders(r.Context(), team, id, body.Headers); err != nil {
		return err
	}
	return wire.NoContent(w)
}

func (a api) readWebhookSecret(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	team, err := m.open()
	if err != nil {
		return err
	}
	secret, err := a.Webhooks.Secret(r.Context(), team, id)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return wire.JSON(w, http.StatusOK, webhookSecretOut{secret.Text()})
}

func (a api) rotateWebhookSecret(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	var body webhookSecretIn
	m.OptBody(&body)
	m.notEmpty("key", body.Key)
	team, err := m.open()
	if err != nil {
		return err
	}
	if err := a.Webhooks.Rotate(r.Context(), team, id, value(body.Key)); err != nil {
		return err
	}
	return wire.NoContent(w)
}
