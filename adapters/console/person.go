package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// user is a user as the API publishes it.
type user struct {
	ID       string    `json:"user_id"`
	ClientID string    `json:"client_user_id"`
	Created  time.Time `json:"created_on"`
	Sources  []struct {
		Source struct {
			Name string `json:"name"`
		} `json:"source"`
	} `json:"connected_sources"`
}

func (s *Console) users(w http.ResponseWriter, r *http.Request, on *session) error {
	const size = 50
	var data struct {
		Users      []user `json:"users"`
		Total      int    `json:"total"`
		Search     string `json:"-"`
		Prev, Next string `json:"-"`
	}
	data.Search = r.FormValue("q")
	if data.Search != "" {
		if err := s.get(r, "/v2/team/users/search", url.Values{"query_id": {data.Search}}, &data.Users); err != nil {
			return err
		}
		data.Total = len(data.Users)
		return s.show(w, r, on, "users", "Users", data)
	}
	offset, _ := strconv.Atoi(r.FormValue("offset"))
	offset = max(offset, 0)
	if err := s.get(r, "/v2/user/", url.Values{"offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(size)}}, &data); err != nil {
		return err
	}
	if offset > 0 {
		data.Prev = fmt.Sprintf("?offset=%d", max(0, offset-size))
	}
	if offset+size < data.Total {
		data.Next = fmt.Sprintf("?offset=%d", offset+size)
	}
	return s.show(w, r, on, "users", "Users", data)
}

// personPage is what the pages of one person share.
type personPage struct {
	User     user
	Section  string
	From, To string
	Chart    *chart
}

// openPerson reads the person of a page.
func (s *Console) openPerson(r *http.Request, section string, days rangeOf) (personPage, error) {
	p := personPage{Section: section, From: days.from.Format(time.DateOnly), To: days.to.Format(time.DateOnly)}
	err := s.get(r, "/v2/user/"+userPath(r), nil, &p.User)
	return p, err
}

func (p *personPage) title() string { return "User " + p.User.ClientID }

// source is a connection of a person with what was read of it.
type source struct {
	Name    string    `json:"name"`
	Slug    string    `json:"slug"`
	Status  string    `json:"status"`
	Created time.Time `json:"created_on"`
	Error   *struct {
		Message string `json:"error_message"`
	} `json:"error_details"`
	Newest    time.Time `json:"-"`
	Attempt   time.Time `json:"-"`
	Resources int       `json:"-"`
	Failing   int       `json:"-"`
	// History is nil if none is being fetched.
	History *historyOf `json:"-"`
}

// resourcePage is a page of users with what was read of their sources.
type resourcePage struct {
	Data []struct {
		UserID string `json:"user_id"`
		// Provider holds resources by the slug of their source.
		Provider map[string]map[string]struct {
			Last *struct {
				At     time.Time `json:"timestamp"`
				Status string    `json:"status"`
			} `json:"last_attempt"`
			Newest *time.Time `json:"newest_data"`
		} `json:"provider"`
	} `json:"data"`
	Next string `json:"next_cursor"`
}

// sources reads the connections of a person and their newest data.
func (s *Console) sources(r *http.Request, id string) ([]source, error) {
	var list struct {
		Providers []source `json:"providers"`
	}
	if err := s.get(r, "/v2/user/providers/"+id, nil, &list); err != nil {
		return nil, err
	}
	var found resourcePage
	if err := s.optional(s.get(r, "/v2/introspect/resources", url.Values{"user_id": {id}}, &found)); err != nil {
		return nil, err
	}
	for i := range list.Providers {
		p := &list.Providers[i]
		for _, u := range found.Data {
			for _, one := range u.Provider[p.Slug] {
				p.Resources++
				if one.Newest != nil && one.Newest.After(p.Newest) {
					p.Newest = *one.Newest
				}
				if one.Last == nil {
					continue
				}
				if one.Last.At.After(p.Attempt) {
					p.Attempt = one.Last.At
				}
				if one.Last.Status == "failure" {
					p.Failing++
				}
			}
		}
	}
	return list.Providers, s.addHistories(r, list.Providers)
}

func (s *Console) person(w http.ResponseWriter, r *http.Request, on *session) error {
	days, err := s.parseRange(r, 7)
	if err != nil {
		return err
	}
	var data struct {
		personPage
		Connections              []source
		Resource, Step, Unit, By string
		Resources                []string
		Buckets                  []bucket
		Profile                  *glucoseProfile
		Sum                      bool
	}
	if data.personPage, err = s.openPerson(r, "data", days); err != nil {
		return err
	}
	if data.Connections, err = s.sources(r, userPath(r)); err != nil {
		return err
	}
	schema, err := s.schema(r)
	if err != nil {
		return err
	}
	list := schema.resources()
	data.Resource = cmp.Or(r.FormValue("resource"), "heartrate")
	at := slices.IndexFunc(list, func(one resource) bool { return one.name == data.Resource })
	if at < 0 {
		return &apiError{Status: http.StatusUnprocessableEntity, Message: "resource: must be one of those in the form"}
	}
	for _, one := range list {
		data.Resources = append(data.Resources, one.name)
	}
	data.Buckets, data.By = buckets, r.FormValue("by")
	step, err := bucketOf(data.By, days.days())
	if err != nil {
		return err
	}
	found, err := s.series(r, userPath(r), list[at], days, step)
	if err != nil {
		return err
	}
	data.Step, data.Unit, data.Sum = step.Name, list[at].fields[0].Unit, list[at].sum
	title := words(data.Resource)
	panels := []panel{{title: title + " (" + data.Unit + ")", lines: found.lines}}
	if found.winners != nil {
		panels = append(panels, panel{title: "Source used by the merge", spans: found.winners})
	}
	data.Chart = draw(title, panels...)
	if data.Resource == "glucose" && days.days() > 1 {
		if data.Profile, err = s.glucoseProfile(r, list[at], days); err != nil {
			return err
		}
	}
	return s.show(w, r, on, "person", data.title(), data)
}
