package client

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/url"
	"slices"

	"github.com/healthlab-dev/healthlab/adapters/client/internal/api"
	"github.com/healthlab-dev/healthlab/adapters/client/internal/rest"
)

func call[T any](ctx context.Context, c *Client, r Request, path ...string) (answer T, err error) {
	r.Path, r.Answer = rest.At(path...), &answer
	err = c.Do(ctx, r)
	return answer, err
}

// pages returns the items of all pages of the list at path. next names the query parameter that takes the cursor. items
// returns the items of a page, and the cursor of the next page.
func pages[P, T any](ctx context.Context, c *Client, q url.Values, next string, items func(P) ([]T, *string), path ...string) iter.Seq2[T, error] {
	return rest.Pages(func(cursor *string) ([]T, *string, error) {
		page, err := call[P](ctx, c, Request{Method: "GET", Query: rest.PageQuery(q, next, cursor)}, path...)
		if err != nil {
			return nil, nil, err
		}
		list, following := items(page)
		return list, following, nil
	})
}

// CreateUser adds a user.
func (c *Client) CreateUser(ctx context.Context, u NewUser) (User, error) {
	return call[User](ctx, c, Request{Method: "POST", Body: u}, "v2", "user")
}

// User returns a user by id.
func (c *Client) User(ctx context.Context, id string) (User, error) {
	return call[User](ctx, c, Request{Method: "GET"}, "v2", "user", id)
}

// UserByClientID returns a user by the team's own id.
func (c *Client) UserByClientID(ctx context.Context, id string) (User, error) {
	return call[User](ctx, c, Request{Method: "GET"}, "v2", "user", "resolve", id)
}

// Users returns all users.
func (c *Client) Users(ctx context.Context) iter.Seq2[User, error] {
	return pages(ctx, c, url.Values{"limit": {"500"}}, "offset", func(p api.UserPage) ([]User, *string) {
		return p.Users, rest.Following(p.Offset+len(p.Users), len(p.Users) > 0 && p.Offset+len(p.Users) < p.Total)
	}, "v2", "user")
}

// DeleteUser deletes a user with all data.
func (c *Client) DeleteUser(ctx context.Context, id string) error {
	return c.Do(ctx, Request{Method: "DELETE", Path: rest.At("v2", "user", id)})
}

// Connect connects a user with a provider whose data the team uploads itself, such as manual.
func (c *Client) Connect(ctx context.Context, userID, provider string) error {
	return c.Do(ctx, Request{Method: "POST", Path: rest.At("v2", "link", "provider", "manual", provider), Body: api.Connect{UserID: userID}})
}

// CreateLinkToken returns a token, and the address of the pages where a person links a source.
func (c *Client) CreateLinkToken(ctx context.Context, t NewLinkToken) (LinkToken, error) {
	return call[LinkToken](ctx, c, Request{Method: "POST", Body: t}, "v2", "link", "token")
}

// UploadSamples stores samples of a resource, such as heartrate. Counts.Refused lists the first 100 samples that the
// service refused. Samples outside of the user's ingestion bounds are only counted, in Counts.Dropped.
func (c *Client) UploadSamples(ctx context.Context, userID, resource string, u SampleUpload) (Counts, error) {
	return call[Counts](ctx, c, Request{Method: "POST", Body: u}, "v2", "timeseries", userID, resource)
}

// UploadSummaries stores the items of an upload, which is an [ActivityUpload], a [SleepUpload] or a
// [WorkoutUpload] of the resource activity, sleep or workouts.
func (c *Client) UploadSummaries(ctx context.Context, userID, resource string, upload any) (Counts, error) {
	return call[Counts](ctx, c, Request{Method: "POST", Body: upload}, "v2", "summary", resource, userID)
}

// Summaries returns the summaries of activity, sleep or workouts as [Activity], [Sleep] or [Workout]. The filter has
// the parameters of [Client.Samples].
func Summaries[T any](ctx context.Context, c *Client, userID, resource string, filter url.Values) ([]T, error) {
	answer, err := call[map[string]json.RawMessage](ctx, c, Request{Method: "GET", Query: filter}, "v2", "summary", resource, userID)
	if err != nil {
		return nil, err
	}
	return rest.List[T](answer[resource])
}

// Samples returns samples in groups. All samples of a group have one source, and several groups may have the same
// source. The filter requires start_date, and may have end_date, time_zone and provider.
func (c *Client) Samples(ctx context.Context, userID, resource string, filter url.Values) iter.Seq2[Group, error] {
	return pages(ctx, c, filter, "next_cursor", func(p api.SamplePage) (list []Group, next *string) {
		for _, provider := range slices.Sorted(maps.Keys(p.Groups)) {
			list = append(list, p.Groups[provider]...)
		}
		return list, p.NextCursor
	}, "v2", "timeseries", userID, resource, "grouped")
}

// Query runs aggregate queries on the data of one user.
func (c *Client) Query(ctx context.Context, userID string, q QueryRequest) (QueryAnswer, error) {
	return call[QueryAnswer](ctx, c, Request{Method: "POST", Body: q}, "aggregate", "v1", "user", userID, "query")
}

// CreateWebhook adds an endpoint to which the service sends a team's events.
func (c *Client) CreateWebhook(ctx context.Context, orgID, teamID, environment string, w NewWebhook) (Webhook, error) {
	return call[Webhook](ctx, c, Request{Method: "POST", Body: w}, "v1", "org", orgID, "team", teamID, environment, "webhook")
}

// Webhooks returns the endpoints of a team.
func (c *Client) Webhooks(ctx context.Context, orgID, teamID, environment string) iter.Seq2[Webhook, error] {
	return pages(ctx, c, url.Values{"limit": {"250"}}, "next_cursor", func(p api.WebhookPage) ([]Webhook, *string) {
		return p.Data, p.NextCursor
	}, "v1", "org", orgID, "team", teamID, environment, "webhook")
}

// LabTests returns the tests that can be ordered. The filter takes the parameters in the contract.
func (c *Client) LabTests(ctx context.Context, filter url.Values) iter.Seq2[LabTest, error] {
	return pages(ctx, c, filter, "next_cursor", func(p api.LabTestsPage) ([]LabTest, *string) { return p.Data, p.NextCursor }, "v3", "lab_test")
}

// CreateOrder places an order. With a key of at most 255 characters the service places the order once, and the client
// retries as described at [Client.Do]. Without a key the request is sent once.
func (c *Client) CreateOrder(ctx context.Context, key string, o NewOrder) (Order, error) {
	answer, err := call[api.OrderAnswer](ctx, c, Request{Method: "POST", IdempotencyKey: key, Body: o}, "v3", "order")
	return answer.Order, err
}

// Order returns an order.
func (c *Client) Order(ctx context.Context, id string) (Order, error) {
	return call[Order](ctx, c, Request{Method: "GET"}, "v3", "order", id)
}

// Orders returns orders. The filter takes the parameters in the contract, such as user_id and status.
func (c *Client) Orders(ctx context.Context, filter url.Values) iter.Seq2[Order, error] {
	return pages(ctx, c, filter, "page", func(p api.OrdersPage) ([]Order, *string) {
		return p.Orders, rest.Following(p.Page+1, len(p.Orders) > 0 && p.Page*p.Size < p.Total)
	}, "v3", "orders")
}

// OrderResults returns the results of an order.
func (c *Client) OrderResults(ctx context.Context, id string) (OrderResults, error) {
	return call[OrderResults](ctx, c, Request{Method: "GET"}, "v3", "order", id, "result")
}

// CancelOrder cancels an order.
func (c *Client) CancelOrder(ctx context.Context, id string) (Order, error) {
	answer, err := call[api.OrderAnswer](ctx, c, Request{Method: "POST"}, "v3", "order", id, "cancel")
	return answer.Order, err
}
