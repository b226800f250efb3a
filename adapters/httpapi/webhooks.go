package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/webhook"
)

// managementPath is the common beginning of the paths that need a management key for one team.
const managementPath = "/v1/org/{org_id}/team/{team_id}/{environment}"

func (a api) webhookOperations() []server.Operation {
	if a.Webhooks == nil {
		return nil
	}
	const all, one = managementPath + "/webhook", managementPath + "/webhook/{webhook_id}"
	return []server.Operation{
		{ID: "list_webhooks", Pattern: "GET " + all, Handle: a.managing(asJSON(a.listWebhooks))},
		{ID: "create_webhook", Pattern: "POST " + all, Handle: a.managing(asJSON(a.createWebhook))},
		{ID: "read_webhook", Pattern: "GET " + one, Handle: a.managing(asJSON(a.readWebhook))},
		{ID: "patch_webhook", Pattern: "PATCH " + one, Handle: a.managing(asJSON(a.patchWebhook))},
		{ID: "delete_webhook", Pattern: "DELETE " + one, Handle: a.managing(a.deleteWebhook)},
		{ID: "read_webhook_headers", Pattern: "GET " + one + "/headers", Handle: a.managing(asJSON(a.readWebhookHeaders))},
		{ID: "put_webhook_headers", Pattern: "PUT " + one + "/headers", Handle: a.managing(a.putWebhookHeaders)},
		{ID: "read_webhook_secret", Pattern: "GET " + one + "/secret", Handle: a.managing(a.readWebhookSecret)},
		{ID: "rotate_webhook_secret", Pattern: "POST " + one + "/secret/rotate", Handle: a.managing(a.rotateWebhookSecret)},
		{ID: "send_webhook_test", Pattern: "POST " + one + "/test", Handle: a.managing(a.sendWebhookTest)},
		{ID: "list_webhook_attempts", Pattern: "GET " + one + "/attempt", Handle: a.managing(asJSON(a.listWebhookAttempts))},
		{ID: "retry_webhook_message", Pattern: "POST " + one + "/message/{message_id}/retry", Handle: a.managing(asJSON(a.retryWebhookMessage))},
		{ID: "recover_webhook", Pattern: "POST " + one + "/recover", Handle: a.managing(asJSON(a.recoverWebhook))},
	}
}

// webhookOut is an endpoint without its secrets and headers.
type webhookOut struct {
	ID             webhook.EndpointID      `json:"id"`
	URL            string                  `json:"url"`
	Description    string                  `json:"description"`
	RateLimit      *int                    `json:"rate_limit"`
	Disabled       bool                    `json:"disabled"`
	DisabledReason *webhook.DisabledReason `json:"disabled_reason"`
	FilterTypes    *[]string               `json:"filter_types"`
	OrderScope     webhook.OrderScope      `json:"order_scope"`
	FailingSince   *healthlab.Time         `json:"failing_since"`
	CreatedAt      healthlab.Time          `json:"created_at"`
	UpdatedAt      healthlab.Time          `json:"updated_at"`
}

func webhookFrom(e webhook.Endpoint) webhookOut {
	out := webhookOut{
		ID: e.ID, URL: e.URL, Description: e.Description, Disabled: e.Disabled, OrderScope: e.OrderScope,
		CreatedAt: healthlab.At(e.CreatedAt), UpdatedAt: healthlab.At(e.UpdatedAt),
	}
	if at := e.Health.FirstFailedAt; !at.IsZero() {
		out.FailingSince = new(healthlab.At(at))
	}
	if e.RateLimit > 0 {
		out.RateLimit = &e.RateLimit
	}
	if e.DisabledReason != "" {
		out.DisabledReason = &e.DisabledReason
	}
	if e.FilterTypes != nil {
		out.FilterTypes = &e.FilterTypes
	}
	return out
}

// webhooksOut is one page of endpoints.
type webhooksOut struct {
	Data       []webhookOut `json:"data"`
	NextCursor *string      `json:"next_cursor"`
}

// newWebhookIn is the body that registers an endpoint.
type newWebhookIn struct {
	URL         string    `json:"url"`
	Description *string   `json:"description"`
	RateLimit   *int      `json:"rate_limit"`
	FilterTypes *[]string `json:"filter_types"`
	OrderScope  *string   `json:"order_scope"`
	Disabled    *bool     `json:"disabled"`
	Secret      *string   `json:"secret"`
}

// webhookPatchIn is the body that changes an endpoint. A null limit or filter is removed. Null leaves any other field
// unchanged.
type webhookPatchIn struct {
	URL         *string            `json:"url"`
	Description *string            `json:"description"`
	RateLimit   wire.Opt[int]      `json:"rate_limit"`
	FilterTypes wire.Opt[[]string] `json:"filter_types"`
	Disabled    *bool              `json:"disabled"`
}

func (m *managed) webhookID() webhook.EndpointID {
	return webhook.EndpointID{UUID: m.PathUUID("webhook_id")}
}

func (m *managed) page() (size int, cursor string) {
	const most = 250
	return m.Int("limit", 50, 1, most), m.ShortText("next_cursor")
}

// cursorProblem changes the path of a problem with a cursor to the name of the query parameter of the request.
func cursorProblem(err error) error {
	var invalid *healthlab.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	own := healthlab.InvalidError{Problems: make([]healthlab.Problem, len(invalid.Problems))}
	for i, p := range invalid.Problems {
		if len(p.Path) == 1 && p.Path[0] == "cursor" {
			p.Path = []any{"next_cursor"}
		}
		own.Problems[i] = p
	}
	return &own
}

func next(cursor string) *string {
	if cursor == "" {
		return nil
	}
	return &cursor
}

func (a api) listWebhooks(ctx context.Context, m *managed) (any, error) {
	size, cursor := m.page()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	page, err := a.Webhooks.List(ctx, webhook.EndpointQuery{Team: team, Cursor: cursor, Size: size})
	if err != nil {
		return nil, cursorProblem(err)
	}
	out := webhooksOut{Data: make([]webhookOut, 0, len(page.Endpoints)), NextCursor: next(page.Next)}
	for _, e := range page.Endpoints {
		out.Data = append(out.Data, webhookFrom(e))
	}
	return out, nil
}

func (a api) createWebhook(ctx context.Context, m *managed) (any, error) {
	var body newWebhookIn
	m.Body(&body)
	m.NotEmpty("secret", body.Secret)
	m.NotEmpty("order_scope", body.OrderScope)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	e, err := a.Webhooks.Create(ctx, team, webhook.NewEndpoint{
		URL: body.URL, Description: value(body.Description), RateLimit: body.RateLimit, FilterTypes: value(body.FilterTypes),
		OrderScope: webhook.OrderScope(value(body.OrderScope)), Disabled: value(body.Disabled), Secret: value(body.Secret),
	})
	if err != nil {
		return nil, err
	}
	return webhookFrom(e), nil
}

// value returns *p, or the zero value if p is nil.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func (a api) readWebhook(ctx context.Context, m *managed) (any, error) {
	id := m.webhookID()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	e, err := a.Webhooks.Get(ctx, team, id)
	if err != nil {
		return nil, err
	}
	return webhookFrom(e), nil
}

func (a api) patchWebhook(ctx context.Context, m *managed) (any, error) {
	id := m.webhookID()
	var body webhookPatchIn
	m.Body(&body)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	patch := webhook.Patch{URL: body.URL, Description: body.Description, Disabled: body.Disabled}
	if body.RateLimit.Set {
		patch.RateLimit = new(body.RateLimit.Ptr())
	}
	if body.FilterTypes.Set {
		patch.FilterTypes = new(value(body.FilterTypes.Ptr()))
	}
	e, err := a.Webhooks.Patch(ctx, team, id, patch)
	if err != nil {
		return nil, err
	}
	return webhookFrom(e), nil
}

func (a api) deleteWebhook(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	team, err := m.authorizedTeam()
	if err != nil {
		return err
	}
	if err := a.Webhooks.Delete(r.Context(), team, id); err != nil {
		return err
	}
	return wire.NoContent(w)
}

// webhookHeadersOut lists the custom headers of an endpoint. Values that look like credentials are omitted.
type webhookHeadersOut struct {
	Headers   map[string]string `json:"headers"`
	Sensitive []string          `json:"sensitive"`
}

// webhookHeadersIn is the body that replaces the custom headers of an endpoint.
type webhookHeadersIn struct {
	Headers map[string]string `json:"headers"`
}

// webhookSecretOut is the secret of an endpoint.
type webhookSecretOut struct {
	Key string `json:"key"`
}

// webhookSecretIn is the body that rotates the secret of an endpoint. A null secret generates a new one.
type webhookSecretIn struct {
	Key *string `json:"key"`
}

func (a api) readWebhookHeaders(ctx context.Context, m *managed) (any, error) {
	id := m.webhookID()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	h, err := a.Webhooks.Headers(ctx, team, id)
	if err != nil {
		return nil, err
	}
	out := webhookHeadersOut{Headers: h.Values, Sensitive: slices.Sorted(slices.Values(h.Sensitive))}
	if out.Headers == nil {
		out.Headers = map[string]string{}
	}
	if out.Sensitive == nil {
		out.Sensitive = []string{}
	}
	return out, nil
}

func (a api) putWebhookHeaders(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	var body webhookHeadersIn
	m.Body(&body)
	team, err := m.authorizedTeam()
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
	team, err := m.authorizedTeam()
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
	m.NotEmpty("key", body.Key)
	team, err := m.authorizedTeam()
	if err != nil {
		return err
	}
	if err := a.Webhooks.Rotate(r.Context(), team, id, value(body.Key)); err != nil {
		return err
	}
	return wire.NoContent(w)
}
