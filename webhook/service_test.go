package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

func paths(t *testing.T, err error) []string {
	t.Helper()
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	var out []string
	for _, p := range invalid.Problems {
		out = append(out, strings.Trim(fmt.Sprint(p.Path), "[]")+" "+p.Code)
	}
	return out
}

func TestCreateEndpoint_reportsEveryInvalidField(t *testing.T) {
	h := newFixture(t)
	zero := 0
	_, err := h.service.Create(t.Context(), team, webhook.NewEndpoint{
		URL: "http://planted-host/", Description: strings.Repeat("é", 501), RateLimit: &zero,
		FilterTypes: []string{"labtest.order.updated", "planted", "labtest.order.updated"}, OrderScope: "planted", Secret: "planted",
	})
	require.Equal(t, []string{
		"url bad_scheme", "url bad_host", "description bad_description", "filter_types 1 bad_type", "filter_types 2 duplicate",
		"rate_limit range", "order_scope unknown_value", "secret bad_secret",
	}, paths(t, err))
	require.NotContains(t, err.Error(), "planted")
	_, err = h.service.Create(t.Context(), team, webhook.NewEndpoint{URL: "https://receiver.example.com", FilterTypes: []string{}})
	require.Equal(t, []string{"filter_types bad_length"}, paths(t, err))
}

func TestEndpoint_isCreatedPatchedListedAndDeleted(t *testing.T) {
	h := newFixture(t)
	ctx := t.Context()
	rate := 5
	e, err := h.service.Create(ctx, team, webhook.NewEndpoint{
		URL: "https://Receiver.example.com/in", Description: "d", RateLimit: &rate, FilterTypes: []string{"some.future.type"}, Secret: k1,
	})
	require.NoError(t, err)
	require.Equal(t, "https://receiver.example.com/in", e.URL)
	got, err := h.service.Get(ctx, team, e.ID)
	require.NoError(t, err)
	require.Equal(t, e, got)
	s, err := h.service.Secret(ctx, team, e.ID)
	require.NoError(t, err)
	require.Equal(t, k1, s.Text())
	require.Len(t, h.audited, 1)
	require.Equal(t, "secret", h.audited[0].What)

	off, noFilter := true, []string(nil)
	e, err = h.service.Patch(ctx, team, e.ID, webhook.Patch{Disabled: &off, FilterTypes: &noFilter, RateLimit: new(*int)})
	require.NoError(t, err)
	require.True(t, e.Disabled)
	require.Equal(t, webhook.DisabledManual, e.DisabledReason)
	require.Nil(t, e.FilterTypes)
	require.Zero(t, e.RateLimit)
	require.Equal(t, "d", e.Description)
	on := false
	e, err = h.service.Patch(ctx, team, e.ID, webhook.Patch{Disabled: &on})
	require.NoError(t, err)
	require.False(t, e.Disabled)
	require.Empty(t, e.DisabledReason)
	bad := "https://10.0.0.1"
	_, err = h.service.Patch(ctx, team, e.ID, webhook.Patch{URL: &bad})
	require.Equal(t, []string{"url bad_host"}, paths(t, err))

	page, err := h.service.List(ctx, webhook.EndpointQuery{Team: team})
	require.NoError(t, err)
	require.Len(t, page.Endpoints, 1)
	other := healthlab.TeamID{UUID: uuid.New()}
	_, err = h.service.Get(ctx, other, e.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = h.service.Secret(ctx, other, e.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	require.ErrorIs(t, h.service.Delete(ctx, other, e.ID), healthlab.NotFound)
	require.NoError(t, h.service.Delete(ctx, team, e.ID))
	require.ErrorIs(t, h.service.Delete(ctx, team, e.ID), healthlab.NotFound)
}

func TestRotate_signsWithBothSecretsForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		ctx := t.Context()
		e := h.create(t)
		secrets := func() int {
			_, err := h.service.SendTest(ctx, team, e.ID, "labtest.order.updated")
			require.NoError(t, err)
			all := h.to.all()
			return len(all[len(all)-1].Secrets)
		}
		require.Equal(t, 1, secrets())
		require.NoError(t, h.service.Rotate(ctx, team, e.ID, k1))
		require.Equal(t, 2, secrets())
		time.Sleep(24*time.Hour - time.Second)
		require.Equal(t, 2, secrets(), "24 hours of two signatures")
		time.Sleep(time.Second)
		require.Equal(t, 1, secrets())
		for range 9 {
			require.NoError(t, h.service.Rotate(ctx, team, e.ID, ""))
		}
		require.Equal(t, 5, secrets(), "never more than 5")
		require.NoError(t, h.service.Rotate(ctx, team, e.ID, k2))
		all := h.to.all()
		require.NotEqual(t, k2, all[len(all)-1].Secrets[0].Text())
		secrets()
		all = h.to.all()
		require.Equal(t, k2, all[len(all)-1].Secrets[0].Text(), "the newest first")
		require.NoError(t, h.service.Revoke(ctx, team, e.ID))
		require.Equal(t, 1, secrets())
		require.Equal(t, []string{"key bad_secret"}, paths(t, h.service.Rotate(ctx, team, e.ID, "whsec_short")))
	})
}

func TestSetHeaders_hidesCredentialsAndRefusesReservedNames(t *testing.T) {
	h := newFixture(t)
	ctx := t.Context()
	e := h.create(t)
	require.NoError(t, h.service.SetHeaders(ctx, team, e.ID, map[string]string{"x-ward": "7", "Authorization": "Bearer planted", "X-My-Token": "planted"}))
	got, err := h.service.Headers(ctx, team, e.ID)
	require.NoError(t, err)
	require.Equal(t, webhook.Headers{Values: map[string]string{"X-Ward": "7"}, Sensitive: []string{"Authorization", "X-My-Token"}}, got)
	_, err = h.service.SendTest(ctx, team, e.ID, "labtest.order.updated")
	require.NoError(t, err)
	require.Equal(t, http.Header{"X-Ward": {"7"}, "Authorization": {"Bearer planted"}, "X-My-Token": {"planted"}}, h.to.all()[0].Headers)

	for name, code := range map[string]string{
		"Webhook-Id": "refused_name", "content-type": "refused_name", "Host": "refused_name", "Connection": "refused_name",
		"USER-AGENT": "refused_name", "Idempotency-Key": "refused_name", "x-idempotency-key": "refused_name", "TE": "refused_name",
		"Proxy-Authorization": "refused_name", "X-Forwarded-For": "refused_name", "Forwarded": "refused_name", "Via": "refused_name",
		"Expect": "refused_name", "Content-Encoding": "refused_name", "Transfer-Encoding": "refused_name",
		"": "bad_name", "a b": "bad_name", "a:b": "bad_name", "é": "bad_name", "a\r\nb": "bad_name", strings.Repeat("x", 65): "bad_name",
	} {
		require.Equal(t, []string{"headers 0 " + code}, paths(t, h.service.SetHeaders(ctx, team, e.ID, map[string]string{name: "v"})), name)
	}
	for _, value := range []string{"a\r\nb", "é", "a\x00", strings.Repeat("x", 1025)} {
		require.Equal(t, []string{"headers 0 bad_value"}, paths(t, h.service.SetHeaders(ctx, team, e.ID, map[string]string{"X": value})))
	}
	require.Equal(t, []string{"headers 1 duplicate"}, paths(t, h.service.SetHeaders(ctx, team, e.ID, map[string]string{"X-A": "1", "x-a": "2"})))
	many := map[string]string{}
	for i := range 21 {
		many[fmt.Sprint("X-", i)] = "v"
	}
	require.Equal(t, []string{"headers too_many"}, paths(t, h.service.SetHeaders(ctx, team, e.ID, many)))
}

func TestSendTest_sendsTheExampleOfAnEventType(t *testing.T) {
	h := newFixture(t)
	e := h.create(t)
	r, err := h.service.SendTest(t.Context(), team, e.ID, "daily.data.sleep.created")
	require.NoError(t, err)
	require.Equal(t, webhook.ClassOK, r.Class)
	got := h.to.all()[0]
	require.Regexp(t, `^msg_test[0-9A-Za-z]{27}$`, got.ID)
	var body struct{ Data json.RawMessage }
	require.NoError(t, json.Unmarshal(got.Body, &body))
	require.JSONEq(t, `{"id":"example"}`, string(body.Data))
	_, err = h.service.SendTest(t.Context(), team, e.ID, "some.future.type")
	require.Equal(t, []string{"event_type unknown_type"}, paths(t, err))
}

func TestService_limitsManualSendsPerTeamAndMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		service, err := webhook.NewService(h.types, h.store.Webhooks(), h.to, h.sealer,
			&webhook.ServiceOptions{PerMinute: 2})
		require.NoError(t, err)
		e, err := service.Create(t.Context(), team, webhook.NewEndpoint{URL: "https://receiver.example.com"})
		require.NoError(t, err)
		_, err = service.SendTest(t.Context(), team, e.ID, "labtest.order.updated")
		require.NoError(t, err)
		_, err = service.SendTest(t.Context(), team, e.ID, "labtest.order.updated")
		require.ErrorIs(t, err, healthlab.Exhausted)
		time.Sleep(20 * time.Second)
		_, err = service.Retry(t.Context(), team, e.ID, uuid.New())
		require.ErrorIs(t, err, healthlab.Exhausted)
		var later interface{ RetryAfter() time.Duration }
		require.ErrorAs(t, err, &later)
		require.Equal(t, time.Duration(40)*time.Second, later.RetryAfter(), "until the minute is over")
		time.Sleep(later.RetryAfter())
		_, err = service.Retry(t.Context(), team, e.ID, uuid.New())
		require.ErrorIs(t, err, healthlab.NotFound)
	})
}

func TestCreateEndpoint_refusesMoreThan50PerTeam(t *testing.T) {
	h := newFixture(t)
	for range 50 {
		h.create(t)
	}
	_, err := h.service.Create(t.Context(), team, webhook.NewEndpoint{URL: "https://receiver.example.com"})
	var rule *healthlab.RuleError
	require.ErrorAs(t, err, &rule)
	require.Equal(t, webhook.RuleEndpointLimit, rule.Type)
	require.Equal(t, healthlab.Precondition, healthlab.KindOf(err), "to try it again later is no use")
	another := healthlab.TeamID{UUID: uuid.New()}
	_, err = h.service.Create(t.Context(), another, webhook.NewEndpoint{URL: "https://receiver.example.com"})
	require.NoError(t, err)
}

func TestService_retryAndRecoverSendMessagesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		e := h.create(t)
		began := time.Now()
		var all []uuid.UUID
		for i := range 1200 {
			all = append(all, h.write(t, "labtest.result.critical", fmt.Sprint(i)))
		}
		off := true
		_, err := h.service.Patch(t.Context(), team, e.ID, webhook.Patch{Disabled: &off})
		require.NoError(t, err)
		stop := h.run(t)
		time.Sleep(time.Minute)
		require.Empty(t, h.to.all())
		off = false
		_, err = h.service.Patch(t.Context(), team, e.ID, webhook.Patch{Disabled: &off})
		require.NoError(t, err)
		n, err := h.service.Recover(t.Context(), team, e.ID, began.Add(-time.Hour), time.Time{})
		require.NoError(t, err)
		require.Equal(t, 1200, n)
		time.Sleep(time.Minute)
		n, err = h.service.Retry(t.Context(), team, e.ID, all[0])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		time.Sleep(time.Minute)
		stop()
		require.Len(t, h.to.all(), 1201)
		m, err := h.service.Message(t.Context(), team, all[0])
		require.NoError(t, err)
		require.Equal(t, h.to.all()[1200].Body, m.Body)
		require.Equal(t, "message", h.audited[0].What)
	})
}

func TestPrint_containsNoPathOrSecretOfAnEndpoint(t *testing.T) {
	h := newFixture(t)
	e := h.create(t)
	var logs bytes.Buffer
	slog.New(slog.NewTextHandler(&logs, nil)).Info("x", "e", e, "sealer", h.sealer)
	for _, out := range []string{logs.String(), fmt.Sprintf("%v %+v %#v %s", e, e, e, h.sealer), fmt.Sprintf("%v %#v", h.sealer, h.sealer)} {
		require.NotContains(t, out, "planted-query")
		require.NotContains(t, out, "/in")
		require.NotContains(t, out, string(e.Secrets[0].Sealed.Box))
	}
	require.Contains(t, logs.String(), "https://receiver.example.com")
}
