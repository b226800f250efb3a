package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A user of the sandbox makes a provider announce new data, twice, and then withdraws a
// consent: the connection fails with the next message.
func TestSandbox_providerSendsMessagesAndWithdrawsConsent(t *testing.T) {
	t.Parallel()
	p := start(t)
	var u struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &u)
	connect(p, u.ID, "fern_diary", "ann")
	wait(t, func() bool { return historyDays(p, u.ID) > 0 })
	const form = "application/x-www-form-urlencoded"
	ask(p, "POST", "/sandbox/provider/fern_diary/push", "name=ann", 401, nil, "content-type", form, "x-service-api-key", "no")
	var sent struct {
		Statuses []int `json:"statuses"`
	}
	ask(p, "POST", "/sandbox/provider/fern_diary/push", "name=ann&times=2&id=one", 200, &sent, "content-type", form)
	require.Equal(t, []int{204, 204}, sent.Statuses)
	require.Equal(t, "connected", status(p, u.ID))
	ask(p, "POST", "/sandbox/provider/fern_diary/withdraw", "name=ann", 204, nil, "content-type", form)
	ask(p, "POST", "/sandbox/provider/fern_diary/push", "name=ann&id=two", 200, &sent, "content-type", form)
	wait(t, func() bool { return status(p, u.ID) == "error" })
	p.quit()
}
