package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/examples/internal/browse"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

// What the console answers to links and forms has no violation of accessibility on a phone, a tablet and a desktop,
// light and dark.
func TestConsole_answerPagesAreAccessible(t *testing.T) {
	t.Parallel()
	if !prove.All() {
		t.Skip("runs in CI and under make prove: the browser takes 16 seconds")
	}
	b := browse.Start(t)
	b.LoadAxe()
	p := start(t, "-management-key", "manager", "-tour")
	link := strings.TrimPrefix(p.until("The console shows last night: "), "The console shows last night: ")
	p.until("tour: ok")
	user := postJSON(p, "/v2/user/", map[string]any{"client_user_id": "answered"})["user_id"].(string)
	tab := b.Open(t, browse.Person{Desktop: true})
	check := func(name string, words ...string) {
		t.Helper()
		tab.See(words...)
		tab.CheckWidths(screens...)
		tab.Picture(name, 1200)
		require.Empty(t, tab.Refusals(), name)
	}
	at := func(path string) { t.Helper(); tab.Go(p.url + consolePath + path) }

	tab.Go(link)
	check("link", "This link signs you in")
	tab.Press("Open the console")
	tab.See("Night to")
	tab.Press("Sign out")
	tab.Go(link)
	check("link-used", "This link was used or is older than an hour")
	tab.Enter("Management key", "wrong")
	tab.Press("Sign in")
	check("sign-in-refused", "This management key does not open the team")
	tab.Enter("Management key", "manager")
	tab.Press("Sign in")

	// The checker of signatures.
	secret, err := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	sent := time.Unix(1767286800, 0)
	sign := func(body string) {
		t.Helper()
		at("/signature")
		for label, value := range map[string]string{
			"webhook-id": "msg_1", "webhook-timestamp": "1767286800", "webhook-signature": webhook.Sign(secret, "msg_1", sent, []byte(`{"a":1}`)),
			"Secret": secret.Text(), "Body": body,
		} {
			tab.Set(label, value)
		}
		tab.Press("Check")
	}
	sign(`{"a":1}`)
	tab.Miss(secret.Text())
	check("signature-good", "The signature is of this message and secret.")
	sign(`{"a":2}`)
	check("signature-bad", "The signature is not of this message and secret")

	// A new key, and what becomes of other forms.
	unfold := func() {
		t.Helper()
		browse.Eval[int](tab, `[...document.querySelectorAll("details")].filter(d => d.open = true).length`)
	}
	at("/team")
	unfold()
	tab.CheckWidths(screens...)
	tab.Set("Label", "by hand")
	tab.Press("Create the key")
	check("new-key", "The key by hand is shown once")
	tab.Set("logo url", "none")
	tab.Press("Save the settings")
	check("form-refused", "brand_information", "Go back")
	tab.Press("Go back")
	tab.See("API keys")
	at("/team?saved=1")
	check("settings-saved", "The settings are saved.")
	at("/sandbox?user=" + user)
	tab.Set("Value, measured at this moment", "much")
	tab.Press("Push the sample")
	check("sample-refused", "value: must be a number like 61.5")
	at("/sandbox?user=" + user)
	tab.Set("Value, measured at this moment", "61.5")
	tab.Press("Push the sample")
	check("sample-stored", "New samples that are stored: 1.")
	at("/query?user=" + user)
	tab.Set("Query as JSON", "{}")
	tab.Press("Run")
	check("query-refused", "timeframe")
	at("/users/" + user)
	browse.Eval[string](tab, `document.querySelector('main input[name="csrf"]').value = "old"`)
	tab.Press("Read sources")
	check("form-expired", "Form expired", "Open the page once more")
	at("/users/" + user + "?from=2026-02-30")
	check("range-refused", "from: must be a date like 2026-01-31")
	at("/orders?status=lost")
	check("no-orders", "0 orders")
	at("/users?q=nothing+of+it")
	check("no-users", "0 users")

	// An order before and after it moved, a step that it cannot take, and a result that names it.
	at("/sandbox?user=" + user)
	tab.Press("Order the kit")
	check("order-new", "No results yet.", "No result under review names this order.")
	tab.Choose("Move the order to", "cancelled.testkit.cancelled")
	tab.Press("Move")
	check("order-cancelled", "cancelled")
	tab.Press("Move")
	check("move-refused", "The API refused the request")
	at("/sandbox")
	tab.Choose("Reason", "match_demo")
	tab.Press("Send the result")
	check("result-sent", "The laboratory sends a result")
	at("/reviews")
	for range 200 { // the laboratory sends in the background
		if strings.Contains(tab.Text(), "match demo pending") || strings.Contains(tab.Text(), "pending customer review match demo") {
			break
		}
		at("/reviews")
	}
	result := browse.Eval[string](tab, `document.querySelector("tbody a").innerText`)
	tab.Press(result)
	check("result-candidate", "Accept for this order")
	order := browse.Eval[string](tab, `document.querySelector(".card a").getAttribute("href")`)
	tab.Go(p.url + order)
	check("order-held", "Accept for this order")
	tab.Press("Accept for this order")
	check("result-accepted", "Decision: accept")
	p.quit()
}
