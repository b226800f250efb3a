package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// homeWindow is the time of the numbers of deliveries.
const homeWindow = 10 * time.Minute

func (s *Console) home(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
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
	}
	if err := s.get(r, "/v2/user/metrics", nil, &data.Team); err != nil {
		return err
	}
	if err := s.optional(s.get(r, "/v3/orders/count", nil, &data.Orders)); err != nil {
		return err
	}
	var err error
	if data.Results, err = s.count(r, "/v3/unmatched_result", url.Values{"limit": {"1"}}); err != nil {
		return err
	}
	if data.Reports, err = s.reportsInReview(r, on); err != nil {
		return err
	}
	if data.Behind, err = s.pullsBehind(r); err != nil {
		return err
	}
	if data.Endpoints, err = s.deliveries(r, on); err != nil {
		return err
	}
	return s.show(w, r, on, "home", "Home", data)
}

// count returns the total of a list, and "–" if the host does not serve it.
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

// atLeast formats a number of a page that may be followed by others.
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

// pullsBehind counts the histories that are retried or failed, of up to 500 users.
func (s *Console) pullsBehind(r *http.Request) (string, error) {
	var page struct {
		Data []struct {
			Provider map[string]struct {
				Pulled map[string]struct {
					Status string `json:"status"`
				} `json:"pulled"`
			} `json:"provider"`
		} `json:"data"`
		Next string `json:"next_cursor"`
	}
	if err := s.optional(s.get(r, "/v2/introspect/historical_pull", url.Values{"user_limit": {"500"}}, &page)); err != nil {
		return "", err
	}
	n := 0
	for _, u := range page.Data {
		for _, p := range u.Provider {
			for _, one := range p.Pulled {
				if one.Status == "retrying" || one.Status == "failure" {
					n++
				}
			}
		}
	}
	return atLeast(n, page.Next != ""), nil
}

// endpointHealth is what an endpoint got within homeWindow.
type endpointHealth struct {
	endpoint
	PerMinute, Failing string
}

// deliveries reads the latest attempts at each endpoint.
func (s *Console) deliveries(r *http.Request, on *session) (list []endpointHealth, err error) {
	var page struct {
		Data []endpoint `json:"data"`
	}
	if err := s.manage(r, on, http.MethodGet, s.webhooks(), nil, nil, &page); err != nil {
		return nil, err
	}
	since := s.Now().Add(-homeWindow)
	for _, e := range page.Data {
		var tried struct {
			Data []attempt `json:"data"`
			Next string    `json:"next_cursor"`
		}
		if err := s.manage(r, on, http.MethodGet, s.webhooks()+"/"+e.ID+"/attempt", url.Values{"limit": {"250"}}, nil, &tried); err != nil {
			return nil, err
		}
		n := 0
		last := map[string]bool{} // the latest state of each message
		failing := 0
		for _, a := range tried.Data {
			if a.At.Before(since) {
				break
			}
			n++
			if !last[a.MessageID] && a.State != "succeeded" {
				failing++
			}
			last[a.MessageID] = true
		}
		full := n == len(tried.Data) && tried.Next != ""
		rate := fmt.Sprintf("%.1f", float64(n)/homeWindow.Minutes())
		if full {
			rate += "+"
		}
		list = append(list, endpointHealth{endpoint: e, PerMinute: rate, Failing: atLeast(failing, full)})
	}
	return list, nil
}
