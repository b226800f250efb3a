package httpapi

import (
	"errors"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/webhook"
)

// managementPath is where what one team's management key opens begins.
const managementPath = "/v1/org/{org_id}/team/{team_id}/{environment}"

func (a api) webhookOperations() []operation {
	if a.Webhooks == nil {
		return nil
	}
	const all, one = managementPath + "/webhook", managementPath + "/webhook/{webhook_id}"
	return []operation{
		{id: "list_webhooks", pattern: "GET " + all, handle: a.managing(a.listWebhooks)},
		{id: "create_webhook", pattern: "POST " + all, handle: a.managing(a.createWebhook)},
		{id: "read_webhook", pattern: "GET " + one, handle: a.managing(a.readWebhook)},
		{id: "patch_webhook", pattern: "PATCH " + one, handle: a.managing(a.patchWebhook)},
		{id: "delete_webhook", pattern: "DELETE " + one, handle: a.managing(a.deleteWebhook)},
		{id: "read_webhook_headers", pattern: "GET " + one + "/headers", handle: a.managing(a.readWebhookHeaders)},
		{id: "put_webhook_headers", pattern: "PUT " + one + "/headers", handle: a.managing(a.putWebhookHeaders)},
		{id: "read_webhook_secret", pattern: "GET " + one + "/secret", handle: a.managing(a.readWebhookSecret)},
		{id: "rotate_webhook_secret", pattern: "POST " + one + "/secret/rotate", handle: a.managing(a.rotateWebhookSecret)},
		{id: "send_webhook_test", pattern: "POST " + one + "/test", handle: a.managing(a.sendWebhookTest)},
		{id: "list_webhook_attempts", pattern: "GET " + one + "/attempt", handle: a.managing(a.listWebhookAttempts)},
		{id: "retry_webhook_message", pattern: "POST " + one + "/message/{message_id}/retry", handle: a.managing(a.retryWebhookMessage)},
		{id: "recover_webhook", pattern: "POST " + one + "/recover", handle: a.managing(a.recoverWebhook)},
	}
}

// webhookOut is an endpoint as it is shown: without its secrets and headers.
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
		failing := healthlab.At(at)
		out.FailingSince = &failing
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

// webhookPatchIn is the body that changes an endpoint. Null takes a limit or a filter
// away, and leaves the rest.
type webhookPatchIn struct {
	URL         *string            `json:"url"`
	Description *string            `json:"description"`
	RateLimit   wire.Opt[int]      `json:"rate_limit"`
	FilterTypes wire.Opt[[]string] `json:"filter_types"`
	Disabled    *bool              `json:"disabled"`
}

// webhookID reads the endpoint that the path names.
func (m *managed) webhookID() webhook.EndpointID {
	return webhook.EndpointID{UUID: m.PathUUID("webhook_id")}
}

// notEmpty notes a text of the body that is there and empty: it is no way to ask for the
// default.
func (m *managed) notEmpty(name string, v *string) {
	if v != nil && *v == "" {
		m.Problem("empty", "must not be empty", "body", name)
	}
}

// page reads how many things to list, and from where.
func (m *managed) page() (size int, cursor string) {
	const most = 250
	return m.Int("limit", 50, 1, most), text(m.In, "next_cursor")
}

// cursorProblem names the cursor as the query does.
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

// next is the cursor of the next page, or null.
func next(cursor string) *string {
	if cursor == "" {
		return nil
	}
	return &cursor
}

func (a api) listWebhooks(w http.ResponseWriter, r *http.Request, m *managed) error {
	size, cursor := m.page()
	team, err := m.open()
	if err != nil {
		return err
	}
	page, err := a.Webhooks.List(r.Context(), webhook.EndpointQuery{Team: team, Cursor: cursor, Size: size})
	if err != nil {
		return cursorProblem(err)
	}
	out := webhooksOut{Data: make([]webhookOut, 0, len(page.Endpoints)), NextCursor: next(page.Next)}
	for _, e := range page.Endpoints {
		out.Data = append(out.Data, webhookFrom(e))
	}
	return wire.JSON(w, http.StatusOK, out)
}

func (a api) createWebhook(w http.ResponseWriter, r *http.Request, m *managed) error {
	var body newWebhookIn
	m.Body(&body)
	m.notEmpty("secret", body.Secret)
	m.notEmpty("order_scope", body.OrderScope)
	team, err := m.open()
	if err != nil {
		return err
	}
	e, err := a.Webhooks.Create(r.Context(), team, webhook.NewEndpoint{
		URL: body.URL, Description: value(body.Description), RateLimit: body.RateLimit, FilterTypes: value(body.FilterTypes),
		OrderScope: webhook.OrderScope(value(body.OrderScope)), Disabled: value(body.Disabled), Secret: value(body.Secret),
	})
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, webhookFrom(e))
}

// value is what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func (a api) readWebhook(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	team, err := m.open()
	if err != nil {
		return err
	}
	e, err := a.Webhooks.Get(r.Context(), team, id)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, webhookFrom(e))
}

func (a api) patchWebhook(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	var body webhookPatchIn
	m.Body(&body)
	team, err := m.open()
	if err != nil {
		return err
	}
	patch := webhook.Patch{URL: body.URL, Description: body.Description, Disabled: body.Disabled}
	if body.RateLimit.Set {
		limit := body.RateLimit.Ptr()
		patch.RateLimit = &limit
	}
	if body.FilterTypes.Set {
		filter := value(body.FilterTypes.Ptr())
		patch.FilterTypes = &filter
	}
	e, err := a.Webhooks.Patch(r.Context(), team, id, patch)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, webhookFrom(e))
}

func (a api) deleteWebhook(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	team, err := m.open()
	if err != nil {
		return err
	}
	if err := a.Webhooks.Delete(r.Context(), team, id); err != nil {
		return err
	}
	return wire.NoContent(w)
}
