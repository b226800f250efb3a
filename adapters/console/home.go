package console

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// homeWindow is the period whose deliveries the home page counts.
const homeWindow = 10 * time.Minute

// homePage holds the content of the home page: the work that waits for people and the state of the service, as far as
// the role of the session may see them.
type homePage struct {
	Team struct {
		Users   int `json:"number_of_users"`
		Sources int `json:"number_of_connected_sources"`
		Errored int `json:"number_of_errored_connected_sources"`
		Tests   int `json:"number_of_ordered_tests"`
	}
	Orders struct {
		Total    int            `json:"total"`
		ByStatus map[string]int `json:"by_status"`
	}
	Results, Reports, Behind string
	Endpoints                []endpointHealth
	Rate                     string // delivery attempts per minute at all endpoints
	Failing                  int    // number of endpoints that are failing or disabled
	Undelivered              string // number of messages whose latest attempt failed, over all endpoints
	At                       time.Time
	Statuses, Freshness      []share
	Samples, Attempts        *chart
	More                     bool // the team has more users than Counted
	Counted                  int  // number of users whose samples and newest data are counted
}

// homeUsers is the largest number of users in the counts of the home page.
const homeUsers = 500

// share is one of several counts that are drawn as bars. Percent is the length of the bar.
type share struct {
	Name, Link string
	Count      int
	Percent    string
}

// shares sets the lengths of the bars of list, relative to the largest count.
func shares(list []share) []share {
	most := 1
	for _, one := range list {
		most = max(most, one.Count)
	}
	for i := range list {
		list[i].Percent = strconv.FormatFloat(100*float64(list[i].Count)/float64(most), 'f', 1, 64)
	}
	return list
}

func (s *Console) home(w http.ResponseWriter, r *http.Request, on *session) (err error) {
	data := homePage{At: s.Now()}
	who := holderOf(r)
	if who.May("admin") {
		if err := s.get(r, "/v2/user/metrics", nil, &data.Team); err != nil {
			return err
		}
		if err := s.optional(s.get(r, "/v3/orders/count", nil, &data.Orders)); err != nil {
			return err
		}
		if data.Results, err = s.count(r, "/v3/unmatched_result", url.Values{"limit": {"1"}}); err != nil {
			return err
		}
		if data.Behind, err = s.pullsBehind(r); err != nil {
			return err
		}
		if err := s.readCharts(r, &data); err != nil {
			return err
		}
	}
	if who.May("reviewer") {
		if data.Reports, err = s.reportsInReview(r, on); err != nil {
			return err
		}
	}
	if who.May("viewer") {
		if data.Endpoints, err = s.deliveries(r, on); err != nil {
			return err
		}
		data.Attempts = attemptChart(data.Endpoints, data.At)
		rate, failing, more := 0.0, 0, false
		for _, e := range data.Endpoints {
			rate += e.perMinute
			failing, more = failing+e.failing, more || e.more
			if e.FailingSince != nil || e.Disabled {
				data.Failing++
			}
		}
		data.Rate, data.Undelivered = fmt.Sprintf("%.1f", rate), atLeast(failing, more)
	}
	return s.show(w, r, on, "home", "Home", data)
}

// readCharts reads the data of the home page's drawings: the samples stored on each of the last days, the age of users'
// newest data, and the orders.
func (s *Console) readCharts(r *http.Request, data *homePage) error {
	for _, status := range slices.Sorted(maps.Keys(data.Orders.ByStatus)) {
		data.Statuses = append(data.Statuses, share{Name: words(status), Link: "orders?" + url.Values{"status": {status}}.Encode(), Count: data.Orders.ByStatus[status]})
	}
	slices.SortStableFunc(data.Statuses, func(a, b share) int { return b.Count - a.Count })
	shares(data.Statuses)
	schema, err := s.schema(r)
	if err != nil {
		return err
	}
	samples := map[string]bool{}
	for _, t := range schema.Timeseries {
		samples[t.Name] = true
	}
	var page resourcePage
	if err := s.optional(s.get(r, "/v2/introspect/resources", url.Values{"user_limit": {strconv.Itoa(homeUsers)}}, &page)); err != nil {
		return err
	}
	data.More, data.Counted = page.Next != "", len(page.Data)
	today := data.At.UTC().Truncate(day)
	byDay := map[string]int{}
	ages := []share{{Name: "today or yesterday"}, {Name: "in the last 7 days"}, {Name: "in the last 30 days"}, {Name: "longer ago"}, {Name: "no data yet"}}
	for _, u := range page.Data {
		var newest time.Time
		for _, resources := range u.Provider {
			for name, one := range resources {
				if one.Newest != nil && one.Newest.After(newest) {
					newest = *one.Newest
				}
				for _, c := range one.Stored {
					if samples[name] {
						byDay[c.Date] += c.New
					}
				}
			}
		}
		at := len(ages) - 1
		for i, limit := range []time.Duration{day, 7 * day, 30 * day, 200 * 366 * day} {
			if !newest.IsZero() && !newest.Before(today.Add(-limit)) {
				at = i
				break
			}
		}
		ages[at].Count++
	}
	if !data.More {
		ages[len(ages)-1].Count += max(0, data.Team.Users-len(page.Data))
	}
	data.Freshness = shares(ages)
	l := line{bars: day}
	for at := today.AddDate(0, 0, -13); !at.After(today); at = at.AddDate(0, 0, 1) {
		l.points = append(l.points, point{at, float64(byDay[at.Format(time.DateOnly)])})
	}
	data.Samples = draw("samples stored a day", panel{title: "samples stored a day (UTC)", lines: []line{l}})
	return nil
}

// attemptChart draws the delivery attempts of the last 24 hours by hour; nil if there are none.
func attemptChart(list []endpointHealth, now time.Time) *chart {
	last := now.UTC().Truncate(time.Hour)
	first := last.Add(-23 * time.Hour)
	good, bad, any := map[time.Time]float64{}, map[time.Time]float64{}, false
	for _, e := range list {
		for _, a := range e.attempts {
			at := a.At.UTC().Truncate(time.Hour)
			if at.Before(first) {
				continue
			}
			any = true
			if a.State == "succeeded" {
				good[at]++
			} else {
				bad[at]++
			}
		}
	}
	if !any {
		return nil
	}
	succeeded, failed := line{name: "succeeded", bars: time.Hour, colour: 2}, line{name: "failed or waiting", bars: time.Hour, colour: 1}
	for at := first; !at.After(last); at = at.Add(time.Hour) {
		succeeded.points = append(succeeded.points, point{at, good[at]})
		failed.points = append(failed.points, point{at, bad[at]})
	}
	return draw("delivery attempts an hour", panel{title: "delivery attempts an hour (UTC)", lines: []line{succeeded, failed}, stack: true})
}

// count returns the number of items of a list; "–" if the host does not serve the list.
func (s *Console) count(r *http.Request, path string, q url.Values) (string, error) {
	var page struct {
		Total int `json:"total"`
	}
	err := s.get(r, path, q, &page)
	var failed *apiError
	if errors.As(err, &failed) && (failed.Status == http.StatusNotFound || failed.Status == http.StatusNotImplemented) {
		return "–", nil
	}
	return strconv.Itoa(page.Total), err
}

func atLeast(n int, more bool) string {
	if more {
		return fmt.Sprintf("%d+", n)
	}
	return strconv.Itoa(n)
}

func (s *Console) reportsInReview(r *http.Request, on *session) (string, error) {
	var page reportPage
	q := url.Values{"status": {"pending_review"}, "limit": {"100"}}
	if err := s.optional(s.manage(r, on, http.MethodGet, s.teamPath()+"/lab_report_job", q, nil, &page)); err != nil {
		return "", err
	}
	return atLeast(len(page.Data), page.Next != ""), nil
}

func (s *Console) pullsBehind(r *http.Request) (string, error) {
	page, err := s.histories(r, url.Values{"user_limit": {"500"}})
	return atLeast(len(page.behind()), page.Next != ""), err
}

// endpointHealth is an endpoint with the rate of attempts within homeWindow, and the number of failing messages.
type endpointHealth struct {
	endpoint
	PerMinute string
	Failing   string // number of messages whose latest attempt failed
	perMinute float64
	failing   int
	more      bool // failing may be too low, because not all attempts were read
	attempts  []attempt
}

// deliveries reads the latest attempts at each endpoint, at most 250 of each.
func (s *Console) deliveries(r *http.Request, on *session) (list []endpointHealth, err error) {
	var page struct {
		Data []endpoint `json:"data"`
	}
	if err := s.manage(r, on, http.MethodGet, s.webhooks(), nil, nil, &page); err != nil {
		return nil, err
	}
	now := s.Now()
	for _, e := range page.Data {
		var tried struct {
			Data []attempt `json:"data"`
			Next string    `json:"next_cursor"`
		}
		if err := s.manage(r, on, http.MethodGet, s.webhooks()+"/"+e.ID+"/attempt", url.Values{"limit": {"250"}}, nil, &tried); err != nil {
			return nil, err
		}
		n, failing := 0, 0
		seen := map[string]bool{} // messages whose latest attempt was counted
		window := homeWindow
		for _, a := range tried.Data {
			if !seen[a.MessageID] && (a.State == "waiting" || a.State == "failed") {
				failing++
			}
			seen[a.MessageID] = true
			if !a.At.Before(now.Add(-homeWindow)) {
				n++
			}
		}
		if n == len(tried.Data) && tried.Next != "" { // older attempts are on further pages: the rate covers the newest page
			window = max(now.Sub(tried.Data[n-1].At), time.Second)
		}
		rate := float64(n) / window.Minutes()
		more := tried.Next != "" && failing > 0
		list = append(list, endpointHealth{e, fmt.Sprintf("%.1f", rate), atLeast(failing, more), rate, failing, more, tried.Data})
	}
	return list, nil
}
