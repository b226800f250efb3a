package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/examples/internal/browse"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// left is the key with an arrow to the left, as the library has it.
const enter, space, left = "\r", " ", "\u0302"

// keyboard is a person at a desktop without a pointer.
type keyboard struct {
	*browse.Tab
	t *testing.T
	p *program
}

func (k *keyboard) follow(words, key string, want ...string) {
	k.t.Helper()
	k.Reach(words)
	k.KeysTo(key)
	k.See(want...)
}

func (k *keyboard) fill(label, value string) {
	k.t.Helper()
	k.Reach(label)
	k.Keys(value)
}

func (k *keyboard) opening(words string) {
	k.t.Helper()
	k.Reach(words)
	k.Keys(space)
}

// Every page is reached and every form is sent with Tab, Enter and Space, and the focus is visible.
func TestConsole_everyPageAndFormWorksByKeyboard(t *testing.T) {
	t.Parallel()
	if !prove.All() {
		t.Skip("runs in CI and under make prove: the browser takes 14 seconds")
	}
	b := browse.Start(t)
	p := start(t, "-management-key", "manager", "-tour", "-webhook-url", newServer(t, func(http.ResponseWriter, *http.Request) {}))
	p.until("tour: ok")
	c := newConsoleClient(t, p)
	c.open("/sign-in", map[string][]string{"key": {"manager"}})
	pages := consolePages(p, c)
	k := &keyboard{b.Open(t, browse.Person{Desktop: true}), t, p}

	k.Go(p.url + consolePath)
	require.Equal(t, "Skip to content", k.Tab.Tab().Name)
	k.Keys(enter)
	require.Equal(t, "Management key", k.Tab.Tab().Name, "the next stop is in the content")
	k.Keys("manager")
	k.follow("Sign in", enter, "Waits for a person")

	// Every entry of the navigation, and a walk over the whole page behind it.
	for _, one := range []struct{ entry, heading string }{
		{"Home", "Waits for a person"}, {"Users", "User id or the team's own id"}, {"Orders", "More filters"}, {"Results", "Results under review"},
		{"Reports", "Lab reports"}, {"Events", "Replay a window"}, {"Query", "Query as JSON"}, {"Sources", "Histories that are behind"},
		{"Team", "API keys"}, {"Sandbox", "Make a person"},
	} {
		k.follow(one.entry, enter, one.heading)
		stops := k.Walk()
		require.Contains(t, stops, "Sign out", one.entry)
		require.Greater(t, len(stops), 12, one.entry)
		k.Go(p.url + consolePath + "/users")
	}
	k.team()
	k.Go(p.url + consolePath + "/users")
	k.people()
	k.orders(pages["result"])
	k.reports()
	k.events()
	k.query()
	k.sandbox()
	k.follow("Sign out", enter, "Management key")
	p.quit()
}

// slide reads the values of a chart with the keys of its slider.
func (k *keyboard) slide() {
	k.t.Helper()
	shown := func() string { return browse.Eval[string](k.Tab, `document.querySelector(".shown").innerText`) }
	k.Reach("Time of the values")
	last := shown()
	require.Contains(k.t, last, "bpm")
	k.Keys(left)
	require.NotEqual(k.t, last, shown())
	require.Contains(k.t, browse.Eval[string](k.Tab, `document.activeElement.getAttribute("aria-valuetext")`), strings.Fields(shown())[0])
}

// people walks the pages of a person.
func (k *keyboard) people() {
	k.fill("User id or the team", "measured")
	k.follow("Search", enter, "1 user")
	k.follow("measured", enter, "Source used by the merge")
	k.follow("Read sources", space, "The API refused the request", "the user has no connected provider from which the service fetches data; connect one first")
	k.follow("Go back", enter, "Source used by the merge")
	k.follow("month", enter, "by day and source")
	k.slide()
	k.opening("choose other days or steps")
	k.follow("Show", enter, "by day and source")
	k.follow("Workouts", enter, "Lunch run")
	k.opening("choose other days")
	k.follow("Show", enter, "Lunch run")
	k.follow("Sleep", enter, "No sleep in this range")
	k.opening("choose other days")
	k.follow("Show", enter, "No sleep in this range")
	k.follow("Lab results", enter, "heartrate")
	k.follow("Show", enter, "heartrate")
	k.Walk()
	k.Go(k.p.url + consolePath + "/users")
	k.follow("tour-", enter, "Sources")
	k.follow("Sleep", enter, "asleep")
	k.Walk()
	k.Go(k.p.url + consolePath + "/users")
}

// orders walks the pages of orders and of held results.
func (k *keyboard) orders(held string) {
	k.follow("Orders", enter, "1 order")
	k.opening("More filters")
	k.fill("patient name", "nobody of this name")
	k.KeysTo(enter)
	k.See("0 orders")
	k.follow("Orders", enter, "1 order")
	order := strings.TrimPrefix(browse.Eval[string](k.Tab, `document.querySelector("tbody a").innerText`), "/")
	k.follow(order, enter, "Timeline", "Documents")
	k.Walk()
	k.Go(k.p.url + consolePath + "/orders")
	k.follow("Results", enter, "1 result")
	k.follow("Filter", enter, "1 result")
	k.follow(held[strings.LastIndexByte(held, '/')+1:], enter, "Candidates")
	k.Reach("Action")
	k.Keys("reject")
	k.fill("Note", "of another laboratory")
	k.follow("Decide", space, "resolved", "of another laboratory")
}

func (k *keyboard) reports() {
	k.follow("Reports", enter, "pending review")
	k.follow("Filter", enter, "pending review")
	report := browse.Eval[string](k.Tab, `document.querySelector("tbody a").innerText`)
	k.follow(report, enter, "Complete with these values")
	k.Reach("Drop this result")
	k.Keys(space)
	k.opening("Add a result that was not read")
	k.fill("Reviewer", "Ann")
	k.follow("Complete with these values", enter, "reviewed by Ann", "Result 1 dropped")
}

func (k *keyboard) events() {
	k.follow("Events", enter, "Replay a window")
	k.follow("Show", enter, "Replay a window")
	k.opening("Details")
	k.See("Trigger:")
	k.follow("Send again: message", space, "Events")
	message := browse.Eval[string](k.Tab, `[...document.querySelectorAll("tbody th a")].at(-1).innerText`)
	k.follow(message, enter, message)
	k.Reach("to before (UTC)")
	k.follow("Send again", enter, "Messages that are queued")
	k.follow("Check a signature", enter, "The form is answered and forgotten")
	for _, label := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "Secret", "Body"} {
		k.fill(label, "1")
	}
	k.follow("Check", enter, "secret: must be whsec_ and base64")
}

func (k *keyboard) query() {
	k.follow("Users", enter, "measured")
	k.follow("measured", enter, "Source used by the merge")
	k.follow("Query", enter, "Query as JSON") // the entry of the navigation
	k.follow("Users", enter, "measured")
	k.follow("measured", enter, "Source used by the merge")
	k.Reach("Orders")
	k.Reach("Lab results")
	k.follow("Query", enter, "Query as JSON") // that of the person
	k.follow("Run", enter, "Result", "As code")
	k.opening("Parquet with curl")
	k.See("query.tar.gz")
	k.Walk()
	k.Go(k.p.url + consolePath + "/sources")
	k.follow("Providers that people can connect", enter, "Acme Ring")
}

func (k *keyboard) team() {
	k.follow("Team", enter, "API keys")
	k.opening("New team")
	k.fill("Name of the team", "Second")
	k.follow("Create the team", space, "Second")
	k.opening("New key")
	k.fill("Label", "by hand")
	k.Reach("orders:read")
	k.Keys(space)
	k.follow("Create the key", enter, "is shown once")
	k.follow("Rotate key by hand", enter, "is shown once")
	k.follow("Delete key by hand", space, "by hand")
	k.follow("Delete key by hand", enter, "API keys")
	k.Miss("by hand")
	k.fill("company name", "Clinic")
	k.fill("logo url", "https://clinic.example/logo.png")
	k.Reach("explicit connect")
	k.Keys(space)
	k.follow("Save the settings", enter, "The settings are saved")
	require.True(k.t, browse.Eval[bool](k.Tab, `document.getElementById("set.explicit_connect").checked`))
}

func (k *keyboard) sandbox() {
	k.follow("Sandbox", enter, "Make a person")
	k.fill("The team’s id of the person", "typed")
	k.follow("Make the person", enter, "User typed", "Acme Ring")
	k.follow("Read sources", space, "User typed", "Acme Ring")
	id := strings.Fields(browse.Eval[string](k.Tab, `document.querySelector("main p.soft").innerText`))[0]
	k.follow("Sandbox", enter, "Order a test kit")
	k.Reach("Order the kit") // the field before it has the same name as another one
	k.Keys("\t")
	k.follow("Send the result", enter, "The laboratory sends a result")
	k.Go(fmt.Sprintf("%s%s/sandbox?user=%s", k.p.url, consolePath, id))
	k.follow("Order the kit", enter, "Timeline")
	k.Reach("Interpretation of its results")
	k.follow("Move", space, "completed")
	k.Go(k.p.url + consolePath + pathOfMeasured(k))
	k.fill("Value, measured at this moment", "61")
	k.follow("Push the sample", enter, "New samples that are stored: 1.")
}

// pathOfMeasured is the sandbox's page for the person whose data a test sent.
func pathOfMeasured(k *keyboard) string {
	k.t.Helper()
	var found []struct {
		ID string `json:"user_id"`
	}
	k.p.get("/v2/team/users/search?query_id=measured", &found)
	return "/sandbox?user=" + found[0].ID
}
