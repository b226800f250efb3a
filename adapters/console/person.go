package console

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// userList is a page of users.
type userList struct {
	Users []user `json:"users"`
	Total int    `json:"total"`
}

func (s *Console) users(w http.ResponseWriter, r *http.Request, on *session) error {
	const size = 50
	var data struct {
		userList
		Search     string
		Prev, Next string
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
	if err := s.get(r, "/v2/user/", url.Values{"offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(size)}}, &data.userList); err != nil {
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

// suggestUsers returns, as JSON, at most 20 users whose user id or client_user_id begins with the entered text, or any
// 20 users if it has less than two characters.
func (s *Console) suggestUsers(w http.ResponseWriter, r *http.Request, _ *session) error {
	var list []user
	if text := r.FormValue("q"); len(text) >= 2 {
		if err := s.get(r, "/v2/team/users/search", url.Values{"query_id": {text}}, &list); err != nil {
			return err
		}
	} else {
		var page userList
		if err := s.get(r, "/v2/user/", url.Values{"limit": {"20"}}, &page); err != nil {
			return err
		}
		list = page.Users
	}
	return asJSON(w, list[:min(len(list), 20)])
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// userID returns the id of the user whom text names by user id or by client_user_id.
func (s *Console) userID(r *http.Request, text string) (string, error) {
	var found user
	var failed *apiError
	text = strings.TrimSpace(text)
	if uuidForm.MatchString(text) {
		err := s.get(r, "/v2/user/"+text, nil, &found)
		if err == nil || !errors.As(err, &failed) || failed.Status != http.StatusNotFound {
			return found.ID, err
		}
	}
	if text == "" {
		return "", &apiError{Status: http.StatusUnprocessableEntity, Message: "user: must be a user id or the team’s own id of a user"}
	}
	err := s.get(r, "/v2/user/resolve/"+url.PathEscape(text), nil, &found)
	if errors.As(err, &failed) && failed.Status == http.StatusNotFound {
		return "", &apiError{Status: http.StatusNotFound, Message: "user: no user of the team has this user id or own id"}
	}
	return found.ID, err
}

// ofUser wraps the handler of a user's page. If the path of the page has a client_user_id, it redirects to the same
// page with the user id.
func (s *Console) ofUser(h pageHandler) pageHandler {
	return func(w http.ResponseWriter, r *http.Request, on *session) error {
		given := r.PathValue("id")
		if uuidForm.MatchString(given) || r.Method != http.MethodGet {
			return h(w, r, on)
		}
		id, err := s.userID(r, given)
		if err != nil {
			return err
		}
		head := s.Path + "/users/"
		_, section, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), head), "/")
		to := url.URL{Path: strings.TrimSuffix(head+id+"/"+section, "/"), RawQuery: r.URL.RawQuery}
		http.Redirect(w, r, to.String(), http.StatusSeeOther)
		return nil
	}
}

// personPage holds the values that all pages of one person share.
type personPage struct {
	User     user
	Section  string
	From, To string
	Ranges   []rangeLink
	Chart    *chart
	reads    resourcePage
}

// rangeLink is a link to another range of days.
type rangeLink struct {
	Name, Query string
	Current     bool
}

// openPerson reads the user of a page, and the time of the newest data of each resource. section is the name of the
// page.
func (s *Console) openPerson(r *http.Request, section string) (personPage, error) {
	p := personPage{Section: section}
	if err := s.get(r, "/v2/user/"+userPath(r), nil, &p.User); err != nil {
		return p, err
	}
	err := s.optional(s.get(r, "/v2/introspect/resources", url.Values{"user_id": {userPath(r)}}, &p.reads))
	return p, err
}

func (p *personPage) title() string { return "User " + p.User.ClientID }

// newest returns the time of the newest data of a resource; zero without any.
func (p *personPage) newest(resource string) (at time.Time) {
	for _, u := range p.reads.Data {
		for _, resources := range u.Provider {
			if one := resources[resource].Newest; one != nil && one.After(at) {
				at = *one
			}
		}
	}
	return at
}

// having returns the resources of which the person has data; all if that is unknown.
func (p *personPage) having(all []resource) []resource {
	has := slices.DeleteFunc(slices.Clone(all), func(r resource) bool { return p.newest(r.name).IsZero() })
	if len(has) == 0 {
		return all
	}
	return has
}

// choose returns the resource that form names. If form is empty, it returns the heart rate, or if the person has none,
// the resource with the newest data.
func (p *personPage) choose(form string, all []resource) (resource, error) {
	if len(all) == 0 {
		return resource{}, &apiError{Status: http.StatusNotFound, Message: "the API has no timeseries of numbers"}
	}
	if form == "" {
		has := p.having(all)
		if at := slices.IndexFunc(has, func(r resource) bool { return r.name == "heartrate" }); at >= 0 {
			return has[at], nil
		}
		return slices.MaxFunc(has, func(a, b resource) int { return p.newest(a.name).Compare(p.newest(b.name)) }), nil
	}
	at := slices.IndexFunc(all, func(r resource) bool { return r.name == form })
	if at < 0 {
		return resource{}, &apiError{Status: http.StatusUnprocessableEntity, Message: "resource: must be one of those that the page offers"}
	}
	return all[at], nil
}

// preset is a number of days that a page offers as a link. name is the text of the link.
type preset struct {
	name string
	days int
}

var (
	dataPresets    = []preset{{"day", 1}, {"week", 7}, {"month", 30}, {"3 months", 91}, {"year", 365}}
	sessionPresets = []preset{{"2 weeks", 14}, {"month", 30}, {"3 months", 91}, {"year", 365}}
	labPresets     = []preset{{"3 months", 91}, {"year", 365}, {"5 years", 5 * 365}}
)

// setRange sets the range of days that a page shows, and its links to other ranges: one for each preset, ending on the
// same day, and those to the days before and after. latest is the day of the newest data.
func (p *personPage) setRange(r *http.Request, days rangeOf, latest time.Time, presets []preset) {
	p.From, p.To = days.from.Format(time.DateOnly), days.to.Format(time.DateOnly)
	link := func(name string, from, to time.Time, current bool) {
		q := maps.Clone(r.URL.Query())
		for _, left := range []string{"by", "night", "workout"} {
			q.Del(left)
		}
		q.Set("from", from.Format(time.DateOnly))
		q.Set("to", to.Format(time.DateOnly))
		p.Ranges = append(p.Ranges, rangeLink{name, "?" + q.Encode(), current})
	}
	n := days.days()
	for _, one := range presets {
		link(one.name, days.to.AddDate(0, 0, 1-one.days), days.to, n == one.days)
	}
	link("Earlier", days.from.AddDate(0, 0, -n), days.to.AddDate(0, 0, -n), false)
	if latest = latest.Truncate(day); days.to.Before(latest) {
		to := days.to.AddDate(0, 0, n)
		if to.After(latest) {
			to = latest
		}
		link("Later", to.AddDate(0, 0, 1-n), to, false)
		if !to.Equal(latest) {
			link("Newest", latest.AddDate(0, 0, 1-n), latest, false)
		}
	}
}

func (p *personPage) endOn(r *http.Request, days rangeOf, date string, presets []preset) {
	if latest, err := time.Parse(time.DateOnly, date); err == nil && r.FormValue("to") == "" {
		p.Ranges = nil
		p.setRange(r, rangeOf{latest.AddDate(0, 0, 1-days.days()), latest}, latest, presets)
	}
}

// source is a connection of a person to a provider, with the state of its pulls.
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
	// History is the progress of historical pulls; nil if none is running.
	History *historyOf `json:"-"`
}

// resourcePage is a page of users, with the last pull of each resource of their sources.
type resourcePage struct {
	Data []struct {
		UserID string `json:"user_id"`
		// Provider maps the slug of a source to its resources.
		Provider map[string]map[string]struct {
			Last *struct {
				At     time.Time `json:"timestamp"`
				Status string    `json:"status"`
			} `json:"last_attempt"`
			Newest *time.Time `json:"newest_data"`
			Stored []struct {
				Date string `json:"date"`
				New  int    `json:"new"`
			} `json:"stored_by_day"`
		} `json:"provider"`
	} `json:"data"`
	Next string `json:"next_cursor"`
}

// sources reads the connections of a person. From p.reads it adds the time of the newest data and the state of the
// pulls.
func (s *Console) sources(r *http.Request, p *personPage) ([]source, error) {
	var list struct {
		Providers []source `json:"providers"`
	}
	if err := s.get(r, "/v2/user/providers/"+userPath(r), nil, &list); err != nil {
		return nil, err
	}
	for i := range list.Providers {
		one := &list.Providers[i]
		for _, u := range p.reads.Data {
			for _, read := range u.Provider[one.Slug] {
				one.add(read.Newest)
				if read.Last == nil {
					continue
				}
				if read.Last.At.After(one.Attempt) {
					one.Attempt = read.Last.At
				}
				if read.Last.Status == "failure" {
					one.Failing++
				}
			}
		}
	}
	return list.Providers, s.addHistories(r, list.Providers)
}

func (o *source) add(newest *time.Time) {
	o.Resources++
	if newest != nil && newest.After(o.Newest) {
		o.Newest = *newest
	}
}

func (s *Console) person(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		personPage
		Connections              []source
		Resource, Step, Unit, By string
		Resources                []rangeLink
		Buckets                  []bucket
		Profile                  *glucoseProfile
		Sum, Several             bool
	}
	var err error
	if data.personPage, err = s.openPerson(r, "data"); err != nil {
		return err
	}
	if data.Connections, err = s.sources(r, &data.personPage); err != nil {
		return err
	}
	schema, err := s.schema(r)
	if err != nil {
		return err
	}
	all := schema.resources()
	res, err := data.choose(r.FormValue("resource"), all)
	if err != nil {
		return err
	}
	latest, err := s.latest(r, res, data.newest(res.name))
	if err != nil {
		return err
	}
	days, err := s.parseRange(r, latest, 7)
	if err != nil {
		return err
	}
	data.setRange(r, days, latest, dataPresets)
	for _, one := range data.having(all) {
		data.Resources = append(data.Resources, rangeLink{words(one.name), "?" + url.Values{"resource": {one.name}}.Encode(), one.name == res.name})
	}
	data.Buckets, data.By = buckets, r.FormValue("by")
	most := mostSteps
	if res.sum {
		most = mostBars
	}
	step, err := bucketOf(data.By, days.days(), most)
	if err != nil {
		return err
	}
	found, err := s.series(r, userPath(r), res, days, step)
	if err != nil {
		return err
	}
	data.Resource, data.Step, data.Unit, data.Sum, data.Several = res.name, step.Name, res.Unit(), res.sum, len(found.sources) > 1
	title := words(data.Resource)
	panels := []panel{{title: title, unit: data.Unit, lines: found.lines}}
	if found.winners != nil {
		panels = append(panels, panel{title: "Source used by the merge", spans: found.winners})
	}
	data.Chart = draw(title, panels...)
	if data.Resource == "glucose" && days.days() > 1 {
		if data.Profile, err = s.glucoseProfile(r, data.Unit, days); err != nil {
			return err
		}
	}
	return s.show(w, r, on, "person", data.title(), data)
}

// latest converts newest, the time of the newest data of a resource, to the person's local time. Zero stays zero. If
// the query API finds no data at that time, latest returns it in UTC.
func (s *Console) latest(r *http.Request, res resource, newest time.Time) (time.Time, error) {
	if newest.IsZero() {
		return newest, nil
	}
	at := newest.UTC().Truncate(day)
	days := rangeOf{at.AddDate(0, 0, -1), at.AddDate(0, 0, 1)} // no time zone is more than a day away
	got, err := s.runQuery(r, userPath(r), days, "all", map[string]any{"select": []any{
		map[string]any{"func": "newest", "arg": map[string]any{"index": "timeseries"}}, map[string]any{"func": "count", "arg": res.arg(res.fields[0])},
	}})
	if err != nil {
		return newest, err
	}
	for name := range got {
		if local, err := time.Parse(floating, got.text(name, 0)); err == nil && strings.HasPrefix(name, "newest.") {
			return local, nil
		}
	}
	return newest.UTC(), nil
}
