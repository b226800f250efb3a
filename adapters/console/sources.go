package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// historyPage is a page of users with the historical pulls of their sources.
type historyPage struct {
	Data []struct {
		UserID   string `json:"user_id"`
		Provider map[string]struct {
			Pulled map[string]struct {
				Status   string `json:"status"`
				Error    string `json:"error_details"`
				Days     int    `json:"range_days"`
				Fetched  int    `json:"fetched_days"`
				Timeline struct {
					Scheduled time.Time  `json:"scheduled_at"`
					Started   *time.Time `json:"started_at"`
				} `json:"timeline"`
			} `json:"pulled"`
		} `json:"provider"`
	} `json:"data"`
	Next string `json:"next_cursor"`
}

// behindPull is a pull of one resource of a source that failed or is retried.
type behindPull struct {
	User, Provider, Resource, Status, Error string
	Since                                   time.Time
}

func (s *Console) histories(r *http.Request, q url.Values) (page historyPage, err error) {
	return page, s.optional(s.get(r, "/v2/introspect/historical_pull", q, &page))
}

// behind returns the historical pulls that failed or are retried.
func (p *historyPage) behind() (list []behindPull) {
	for _, u := range p.Data {
		for provider, of := range u.Provider {
			for resource, one := range of.Pulled {
				if one.Status == "retrying" || one.Status == "failure" {
					list = append(list, behindPull{u.UserID, provider, resource, one.Status, one.Error, one.Timeline.Scheduled})
				}
			}
		}
	}
	return list
}

// failing returns the resources, on a page of users, whose last pull failed, and the cursor of the next page.
func (s *Console) failing(r *http.Request, q url.Values) (list []behindPull, next string, err error) {
	var page resourcePage
	err = s.optional(s.get(r, "/v2/introspect/resources", q, &page))
	for _, u := range page.Data {
		for provider, resources := range u.Provider {
			for resource, one := range resources {
				if one.Last != nil && one.Last.Status == "failure" {
					list = append(list, behindPull{User: u.UserID, Provider: provider, Resource: resource, Status: one.Last.Status, Since: one.Last.At})
				}
			}
		}
	}
	return list, page.Next, err
}

// sourcesBehind lists late and failed pulls, for 500 users per page.
func (s *Console) sourcesBehind(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		Histories, Failing       []behindPull
		NextHistories, NextReads string
		First                    bool
	}
	cursor, of := r.FormValue("next_cursor"), r.FormValue("of")
	data.First = cursor == ""
	q := url.Values{"user_limit": {"500"}}
	if cursor != "" {
		q.Set("next_cursor", cursor)
	}
	if of != "reads" {
		page, err := s.histories(r, q)
		if err != nil {
			return err
		}
		data.Histories = page.behind()
		if page.Next != "" {
			data.NextHistories = "?" + url.Values{"of": {"histories"}, "next_cursor": {page.Next}}.Encode()
		}
	}
	if of != "histories" {
		list, next, err := s.failing(r, q)
		if err != nil {
			return err
		}
		data.Failing = list
		if next != "" {
			data.NextReads = "?" + url.Values{"of": {"reads"}, "next_cursor": {next}}.Encode()
		}
	}
	for _, list := range [][]behindPull{data.Histories, data.Failing} {
		slices.SortFunc(list, func(a, b behindPull) int {
			return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.User+a.Provider+a.Resource, b.User+b.Provider+b.Resource))
		})
	}
	return s.show(w, r, on, "sources", "Sources", data)
}

// provider is a source that users can connect, as the API publishes it.
type provider struct {
	Name        string   `json:"name"`
	Slug        string   `json:"slug"`
	Description string   `json:"description"`
	Auth        string   `json:"auth_type"`
	Resources   []string `json:"supported_resources"`
}

func (s *Console) providers(w http.ResponseWriter, r *http.Request, on *session) error {
	var list []provider
	if err := s.get(r, "/v2/providers", nil, &list); err != nil {
		return err
	}
	return s.show(w, r, on, "providers", "Providers", list)
}
