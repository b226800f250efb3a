package linkingtest_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
)

func onStatus(call string, want int, err error) func(*testing.T) {
	return answers(func(c, _ string, status int, _ string) error {
		if c == call && status == want {
			return err
		}
		return nil
	})
}

func swallows(call string, want int) func(*testing.T) {
	return connectors(func(p *provider) {
		p.answered = func(c, secret string, status int, header map[string][]string, body string) error {
			if c == call && status == want {
				return nil
			}
			return answered(c, secret, status, header, body)
		}
	})
}

// Further connectors that are broken in one way.
func TestBrokenConnectors_subtleErrorsFailTheSuite(t *testing.T) {
	n := 0
	conformance.RunBroken(t, []conformance.Broken{
		{Name: "gives heart rates in hertz", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Value = healthdata.Number(61.0 / 60) })},
		{Name: "gives twice the glucose", Subtest: "Pull/Known", Suite: samples("glucose", func(s *healthdata.Sample) { s.Value = healthdata.Number(11) })},
		{Name: "gives the duration of sleep in milliseconds", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Sleep) { s.Duration *= 1000 })},
		{Name: "gives more sleep than the night has", Subtest: "Pull/Stored", Suite: summaries(func(s *healthdata.Sleep) { s.Total = new(int64(40_000)) })},
		{Name: "gives less than no REM sleep", Subtest: "Pull/Stored", Suite: summaries(func(s *healthdata.Sleep) { s.REM = new(int64(-6000)) })},
		{Name: "gives workouts that end before they start", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Workout) { s.TimeStart, s.TimeEnd = s.TimeEnd, s.TimeStart })},
		{Name: "gives a maximum below the average", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Workout) { s.MaxHR = new(int64(100)) })},
		{Name: "gives a night another id each time", Subtest: "Pull/Repeat", Suite: summaries(func(s *healthdata.Sleep) { n++; healthdata.HeadOf(s).ExternalID = fmt.Sprint("n", n) })},
		{Name: "gives intervals without a start", Subtest: "Pull/Shape", Suite: samples("steps", func(s *healthdata.Sample) { s.Start = nil; s.Timestamp = *s.End })},
		{Name: "gives totals of the day so far", Subtest: "Pull/Shape", Suite: samples("steps", func(s *healthdata.Sample) { s.Value = healthdata.Number(420 * float64(1+s.Timestamp.Hour())) })},
		{Name: "cuts times to the day", Subtest: "Pull/Known", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Timestamp = healthlab.At(s.Timestamp.Truncate(24 * time.Hour)) })},
		{Name: "gives samples a day early", Subtest: "Pull/Together", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Timestamp = healthlab.At(s.Timestamp.AddDate(0, 0, -1)) })},
		{Name: "gives offsets in hours", Subtest: "Pull/Shape", Suite: samples("steps", func(s *healthdata.Sample) { s.TimezoneOffset = new(1) })},
		{Name: "gives no type of source", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.Items[0].Source.Type = "" })},
		{Name: "gives data of another person on the last page", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			if p.Next == "" {
				p.Items[0].Owner = new("ben")
			}
		})},
		{Name: "loses the first item of each page", Subtest: "Pull/Known", Suite: pages(func(r linking.PullRequest, p *linking.PullPage) {
			if r.Cursor != "" && len(p.Items[0].Samples) > 0 {
				p.Items[0].Samples = p.Items[0].Samples[1:]
			}
		})},
		{Name: "gives the first page alone", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.Next = "" })},
		{Name: "skips every second page", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			if p.Next != "" {
				var at int64
				_, _ = fmt.Sscan(p.Next, &at)
				p.Next = fmt.Sprint(at + 6*3600)
			}
		})},
		{Name: "gives the resource that leads for all", Subtest: "Pull/Together", Suite: pages(func(r linking.PullRequest, p *linking.PullPage) {
			for i := range p.With {
				p.With[i].Items = p.Items
			}
		})},
		{Name: "leaves out the others after the first page", Subtest: "Pull/Together", Suite: pages(func(r linking.PullRequest, p *linking.PullPage) {
			if r.Cursor != "" {
				p.With = nil
			}
		})},
		{Name: "says that less than no requests are left", Subtest: "Pull/Limits", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.RateLimits[0].Remaining = -1 })},
		{Name: "waits for less than no time", Subtest: "Pull/Limited", Suite: onStatus("pull", 429, &linking.RateLimitError{Wait: -time.Second})},
		{Name: "says a scope of limits that is none", Subtest: "Pull/Limited", Suite: onStatus("pull", 429, &linking.RateLimitError{Wait: 73 * time.Second, Scope: "global"})},
		{Name: "takes a token that is over as a bad request", Subtest: "Pull/Unauthorized", Suite: onStatus("pull", 401, healthlab.Invalid)},
		{Name: "takes an outage as no data", Subtest: "Pull/Outage", Suite: swallows("pull", 503)},
		{Name: "shows the token in hexadecimal digits", Subtest: "Pull/Outage", Suite: answers(func(_, secret string, _ int, _ string) error {
			return fmt.Errorf("%w: %s", healthlab.Unavailable, hex.EncodeToString([]byte(secret)))
		})},
		{Name: "takes a wrong password", Subtest: "Password/Refused", Suite: connectors(func(p *provider) {
			was := p.refusal
			p.refusal = func(d string) error {
				if d == "planted-password" {
					return nil
				}
				return was(d)
			}
		})},
		{Name: "takes a wrong address", Subtest: "Email/Refused", Suite: connectors(func(p *provider) {
			was := p.refusal
			p.refusal = func(d string) error {
				if strings.Contains(d, "@") {
					return nil
				}
				return was(d)
			}
		})},
		{Name: "changes the case of the state", Subtest: "OAuth/Page", Suite: loginPages(func(r linking.AuthorizeRequest, q url.Values) { q.Set("state", strings.ToUpper(r.State)) })},
		{Name: "adds a slash to the redirect", Subtest: "OAuth/Page", Suite: loginPages(func(r linking.AuthorizeRequest, q url.Values) { q.Set("redirect_uri", r.RedirectURL+"/") })},
		{Name: "joins the scopes without a space", Subtest: "OAuth/Scopes", Suite: loginPages(func(r linking.AuthorizeRequest, q url.Values) { q.Set("scope", strings.Join(r.Scopes, "")) })},
		{Name: "pads the challenge", Subtest: "OAuth/Challenge", Suite: loginPages(func(r linking.AuthorizeRequest, q url.Values) { q.Set("code_challenge", r.Challenge+"=") })},
		{Name: "names the method in small letters", Subtest: "OAuth/Challenge", Suite: loginPages(func(r linking.AuthorizeRequest, q url.Values) { q.Set("code_challenge_method", "s256") })},
		{Name: "renews to a secret with a newline", Subtest: "Refresh/NewSecret", Suite: connectors(func(p *provider) { p.renew = func(s string) ([]byte, error) { return []byte("x" + s + "\n"), nil } })},
		{Name: "decodes another refresh token", Subtest: "Tokens/RoundTrip", Suite: connectors(func(p *provider) {
			p.decode = func(b []byte) (linking.Tokens, error) {
				if !strings.HasPrefix(string(b), "token ") {
					return linking.Tokens{}, healthlab.Invalid
				}
				return linking.Tokens{Access: string(b), Refresh: "other"}, nil
			}
		})},
		{Name: "names the account in another case", Subtest: "Grant", Suite: connectors(func(p *provider) {
			k := 0
			p.account = func(int) string { k++; return []string{"ann", "Ann"}[k%2] }
		})},
		{Name: "gives zeros for what was not measured", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) {
			if s.Timestamp.Hour()%2 == 0 {
				s.Value = healthdata.Number(0)
			}
		})},
		{Name: "gives a distance below zero", Subtest: "Pull/Stored", Suite: summaries(func(s *healthdata.Workout) { s.Distance = new(-1.0) })},
		{Name: "gives joules as kilocalories", Subtest: "Pull/Stored", Suite: summaries(func(s *healthdata.Workout) { s.Calories = new(410.0 * 4184) })},
		{Name: "gives an infinite value", Subtest: "Pull/Stored", Suite: samples("glucose", func(s *healthdata.Sample) { s.Value = healthdata.Number(math.Inf(1)) })},
		{Name: "gives nights of no length", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Sleep) { s.BedtimeStop = s.BedtimeStart })},
		{Name: "takes an outage of a renewal as renewed", Subtest: "Refresh/Outage", Suite: swallows("refresh", 503)},
	})
}
