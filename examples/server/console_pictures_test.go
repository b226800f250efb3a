package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/examples/internal/browse"
)

// Takes the pictures of docs/console.md. make pictures runs it.
func TestConsole_takesThePicturesOfTheDocs(t *testing.T) {
	if os.Getenv("HEALTHLABTEST_SCREENSHOTS") == "" {
		t.Skip("takes the pictures of docs/console.md: make pictures")
	}
	b := browse.Start(t)
	p := start(t, "-management-key", "manager", "-tour", "-webhook-url", newServer(t, func(http.ResponseWriter, *http.Request) {}))
	p.until("tour: ok")
	c := newConsoleClient(t, p)
	c.open("/sign-in", url.Values{"key": {"manager"}})
	pages := consolePages(p, c)
	walkingPerson(p, c, pages["sources-of-a-person"][len("/users/"):])
	tab := b.Open(t, browse.Person{Desktop: true})
	tab.Go(p.url + consolePath)
	tab.Enter("Management key", "manager")
	tab.Press("Sign in")
	for name, path := range map[string]string{
		"home": "/", "person": pages["sources-of-a-person"], "glucose": pages["glucose"], "sleep": pages["sleep"],
		"labs": pages["sources-of-a-person"] + "/labs?resource=steps", "order": pages["order"], "report": pages["report"],
	} {
		tab.Go(p.url + consolePath + path)
		tab.Picture(name, 1280)
	}
	tab.Go(p.url + consolePath + "/query?user=measured")
	tab.Press("Run")
	tab.See("mean heartrate")
	tab.Picture("query", 1280)
	p.quit()
}

// walkingPerson stores a year of a person's steps, and five approved reports with a glucose that falls.
func walkingPerson(p *program, c *consoleClient, user string) {
	p.Helper()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	var steps []any
	for i := range 365 {
		from := today.AddDate(0, 0, i-365).Add(17 * time.Hour)
		steps = append(steps, map[string]any{
			"timestamp": from.Format(time.RFC3339), "start": from.Format(time.RFC3339), "end": from.Add(time.Hour).Format(time.RFC3339),
			"timezone_offset": 0, "unit": "count", "value": 3000 + 14*i + i*7919%2000,
		})
	}
	postJSON(p, "/v2/timeseries/"+user+"/steps", map[string]any{"provider": "manual", "source": map[string]any{"type": "phone"}, "data": steps})
	for i, glucose := range []int{112, 109, 104, 99, 94} {
		day := today.AddDate(0, 0, -340+80*i)
		status, answer := send(p, user, "report.pdf", reportOf(day.Format("01/02/2006"), fmt.Sprint(glucose), fmt.Sprintf("0.9%d", i)), "needs_human_review")
		require.Equal(p, http.StatusOK, status, string(answer))
		var job struct {
			ID string `json:"id"`
		}
		require.NoError(p, json.Unmarshal(answer, &job))
		var page string
		wait(p, func() bool {
			_, page, _ = c.open("/reports/"+job.ID, nil)
			return strings.Contains(page, "Complete with these values")
		})
		csrf := csrfToken.FindStringSubmatch(page)[1]
		c.open("/reports/"+job.ID, url.Values{"csrf": {csrf}, "action": {"approve"}, "reviewed_by": {"Ann"},
			"r0.loinc_code": {"2345-7"}, "r1.loinc_code": {"2160-0"}, "r2.loinc_code": {"2951-2"}, "r3.loinc_code": {"2823-3"}})
	}
	wait(p, func() bool {
		var page struct {
			Data []any `json:"data"`
		}
		p.get("/v2/user/"+user+"/lab_result?source=report", &page)
		return len(page.Data) == 5*4
	})
}
