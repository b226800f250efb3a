package main

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/client"
	"github.com/healthlab-dev/healthlab/webhook"
)

// The client does what a team does first: a user, a webhook endpoint, uploads, reads, a query, and an
// order to its result.
func TestGoClient_goesFromAUserToAResult(t *testing.T) {
	t.Parallel()
	p := start(t, "-management-key", "manager")
	defer p.quit()
	ctx := t.Context()
	c, err := client.New(p.url, p.key, &client.Options{ManagementKey: "manager"})
	require.NoError(t, err)

	// A user with a source.
	user, err := c.CreateUser(ctx, client.NewUser{ClientUserID: "member-42", FallbackTimeZone: new("Europe/Berlin")})
	require.NoError(t, err)
	require.NoError(t, c.Connect(ctx, user.UserID, "manual"))
	same, err := c.UserByClientID(ctx, "member-42")
	require.NoError(t, err)
	require.Equal(t, user.UserID, same.UserID)
	require.Equal(t, "Europe/Berlin", same.FallbackTimeZone.ID)
	second, err := c.CreateUser(ctx, client.NewUser{ClientUserID: "member-43"})
	require.NoError(t, err)
	var users []string
	for u, err := range c.Users(ctx) {
		require.NoError(t, err)
		users = append(users, u.UserID)
	}
	require.ElementsMatch(t, []string{user.UserID, second.UserID}, users)

	// A webhook endpoint.
	secret, err := webhook.GenerateSecret(randomReader)
	require.NoError(t, err)
	seen, err := receive(ctx, secret)
	require.NoError(t, err)
	defer seen.close()
	org := orgOf(p)
	endpoint, err := c.CreateWebhook(ctx, org, user.TeamID, "sandbox", client.NewWebhook{URL: seen.url, Secret: new(secret.Text())})
	require.NoError(t, err)
	for e, err := range c.Webhooks(ctx, org, user.TeamID, "sandbox") {
		require.NoError(t, err)
		require.Equal(t, endpoint.ID, e.ID)
	}

	// Uploads; one item is refused, and the others are stored.
	morning := time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC)
	source := &client.UploadSource{Type: new("app")}
	upload := client.SampleUpload{Provider: "manual", Source: source}
	for i := range 30 {
		upload.Data = append(upload.Data, client.SampleIn{Timestamp: new(morning.Add(time.Duration(i) * time.Minute)), Unit: "bpm", Value: 60 + i})
	}
	upload.Data = append(upload.Data, client.SampleIn{Timestamp: new(morning.Add(time.Hour)), Unit: "bpm", Value: -1})
	counts, err := c.UploadSamples(ctx, user.UserID, "heartrate", upload)
	require.NoError(t, err)
	require.Equal(t, 30, counts.New)
	require.Len(t, counts.Refused, 1)
	require.Equal(t, 30, counts.Refused[0].Index)
	night := client.SleepIn{BedtimeStart: morning.Add(-8 * time.Hour), BedtimeStop: morning, Deep: new(5400), Light: new(14400), Rem: new(5400), Awake: new(1800)}
	counts, err = c.UploadSummaries(ctx, user.UserID, "sleep", client.SleepUpload{Provider: "manual", Source: source, Data: []client.SleepIn{night}})
	require.NoError(t, err)
	require.Equal(t, 1, counts.New)
	_, err = seen.waitFor(ctx, func(all []received) bool {
		return slices.Contains(all, received{"daily.data.heartrate.created"}) && slices.Contains(all, received{"daily.data.sleep.created"})
	})
	require.NoError(t, err)

	// Reads.
	days := url.Values{"start_date": {"2026-03-01"}, "end_date": {"2026-03-02"}}
	var values []any
	for group, err := range c.Samples(ctx, user.UserID, "heartrate", days) {
		require.NoError(t, err)
		require.Equal(t, "manual", group.Source.Provider)
		for _, sample := range group.Data {
			values = append(values, sample.Value)
		}
	}
	require.Len(t, values, 30)
	require.InDelta(t, 60, values[0], 0)
	nights, err := client.Summaries[client.Sleep](ctx, c, user.UserID, "sleep", days)
	require.NoError(t, err)
	require.Len(t, nights, 1)
	require.Equal(t, user.UserID, nights[0].UserID)

	// A query.
	value := map[string]any{"timeseries": "heartrate", "field": "value"}
	result, err := c.Query(ctx, user.UserID, client.QueryRequest{
		Timeframe: client.Timeframe{Type: "relative", Anchor: "2026-03-01", Past: client.Period{Unit: "day", Value: new(1)}},
		Queries:   []client.Query{{Select: []any{map[string]any{"func": "max", "arg": value}, map[string]any{"func": "count", "arg": value}}}},
	})
	require.NoError(t, err)
	require.Equal(t, []any{89.0}, result.Results[0].Table.AdditionalProperties["max"])
	require.Equal(t, []any{30.0}, result.Results[0].Table.AdditionalProperties["count"])

	// An order with a key is placed once, and the simulated laboratory finishes it.
	var tests []client.LabTest
	for test, err := range c.LabTests(ctx, nil) {
		require.NoError(t, err)
		tests = append(tests, test)
	}
	require.NotEmpty(t, tests)
	order := client.NewOrder{
		UserID: user.UserID, OrderSet: &client.OrderSet{LabTestIds: []string{tourLabTest}},
		PatientDetails: client.PatientDetails{FirstName: "Tour", LastName: "Person", Dob: "1984-05-09", Gender: "female", PhoneNumber: "+12175550100", Email: "tour@example.org"},
		PatientAddress: client.PatientAddress{ReceiverName: new("Tour Person"), FirstLine: "1 Example Street", City: "Springfield", State: "IL", Zip: new("62701"), Country: "US", PhoneNumber: new("+12175550100")},
	}
	placed, err := c.CreateOrder(ctx, "order-1", order)
	require.NoError(t, err)
	again, err := c.CreateOrder(ctx, "order-1", order)
	require.NoError(t, err)
	require.Equal(t, placed.ID, again.ID)
	require.NoError(t, c.Do(ctx, client.Request{Method: "POST", Path: "/v3/order/" + placed.ID + "/test", Body: struct{}{}}))
	for !strings.HasPrefix(placed.LastEvent.Status, "completed.") {
		_, err = seen.waitFor(ctx, func(all []received) bool { return len(all) > 0 })
		require.NoError(t, err)
		placed, err = c.Order(ctx, placed.ID)
		require.NoError(t, err)
	}
	results, err := c.OrderResults(ctx, placed.ID)
	require.NoError(t, err)
	require.NotEmpty(t, results.Results)
	for o, err := range c.Orders(ctx, url.Values{"user_id": {user.UserID}}) {
		require.NoError(t, err)
		require.Equal(t, placed.ID, o.ID)
	}

	// Errors name the field, or the kind of thing.
	_, err = c.CreateUser(ctx, client.NewUser{ClientUserID: "member-42"})
	var e *client.Error
	require.True(t, errors.As(err, &e), err)
	require.Equal(t, 400, e.Status)
	require.NotEmpty(t, e.Type)
	_, err = c.CreateUser(ctx, client.NewUser{ClientUserID: "a", FallbackBirthDate: new("yesterday")})
	require.True(t, errors.As(err, &e), err)
	require.Equal(t, 422, e.Status)
	require.Equal(t, "body.fallback_birth_date", e.Problems[0].Field)
	require.NoError(t, c.DeleteUser(ctx, user.UserID))
	_, err = c.User(ctx, user.UserID)
	require.True(t, errors.As(err, &e), err)
	require.Equal(t, 404, e.Status)
	require.NotEmpty(t, e.RequestID)
}
