package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

type team struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Region  string    `json:"region"`
	Created time.Time `json:"created_at"`
}

type apiKey struct {
	ID      string    `json:"id"`
	Label   string    `json:"label"`
	Value   string    `json:"value"`
	Created time.Time `json:"created_at"`
}

// setting is a setting of the team. Switches can be changed by the form.
type setting struct {
	Name, Value string
	Switch, On  bool
}

// keysPath is the path of the API keys of the team's region below the organisation.
func (s *Console) keysPath(r *http.Request, on *session) (string, error) {
	var t team
	err := s.manage(r, on, http.MethodGet, "/team/"+s.Team, nil, nil, &t)
	return "/team_api_keys/" + s.Environment + "/" + url.PathEscape(t.Region), err
}

func (s *Console) team(w http.ResponseWriter, r *http.Request, on *session) error {
	return s.showTeam(w, r, on, nil)
}

// showTeam shows teams, keys and settings, and the value of a key that was just made.
func (s *Console) showTeam(w http.ResponseWriter, r *http.Request, on *session, made *apiKey) error {
	var data struct {
		Teams    []team `json:"teams"`
		Team     string
		Keys     []apiKey `json:"api_keys"`
		Made     *apiKey
		Settings []setting
	}
	data.Team, data.Made = s.Team, made
	if err := s.optional(s.manage(r, on, http.MethodGet, "/team", url.Values{"limit": {"100"}}, nil, &data)); err != nil {
		return err
	}
	path, err := s.keysPath(r, on)
	if err != nil {
		return err
	}
	if err := s.optional(s.manage(r, on, http.MethodGet, path, url.Values{"team_id": {s.Team}}, nil, &data)); err != nil {
		return err
	}
	var settings map[string]json.RawMessage
	if err := s.optional(s.manage(r, on, http.MethodGet, s.teamPath()+"/settings", nil, nil, &settings)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		one := setting{Name: name, Value: strings.Trim(string(settings[name]), `"`)}
		if one.Value == "null" {
			one.Value = "none"
		}
		one.Switch, one.On = one.Value == "true" || one.Value == "false", one.Value == "true"
		data.Settings = append(data.Settings, one)
	}
	return s.show(w, r, on, "team", "Team", data)
}

func (s *Console) makeKey(w http.ResponseWriter, r *http.Request, on *session) error {
	path, err := s.keysPath(r, on)
	if err != nil {
		return err
	}
	var made apiKey
	in := map[string]any{"team_id": s.Team, "label": r.PostFormValue("label")}
	if err := s.manage(r, on, http.MethodPost, path, nil, in, &made); err != nil {
		return err
	}
	return s.showTeam(w, r, on, &made)
}

func (s *Console) deleteKey(w http.ResponseWriter, r *http.Request, on *session) error {
	path, err := s.keysPath(r, on)
	if err != nil {
		return err
	}
	if err := s.manage(r, on, http.MethodDelete, path, url.Values{"key_id": {r.PathValue("id")}}, nil, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/team", http.StatusSeeOther)
	return nil
}

// changeSettings changes the switches of the form: "set" names all of them, "on" those that are on.
func (s *Console) changeSettings(w http.ResponseWriter, r *http.Request, on *session) error {
	in := map[string]bool{}
	for _, name := range r.PostForm["set"] {
		in[name] = slices.Contains(r.PostForm["on"], name)
	}
	if err := s.manage(r, on, http.MethodPatch, s.teamPath()+"/settings", nil, in, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/team", http.StatusSeeOther)
	return nil
}

// provider is a source that people can connect.
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

// sandbox makes people with data of a provider.
func (s *Console) sandbox(w http.ResponseWriter, r *http.Request, on *session) error {
	if s.Environment != "sandbox" {
		return &apiError{Status: http.StatusNotFound, Message: "page not found; only a sandbox makes people"}
	}
	if r.Method != http.MethodPost {
		var list []provider
		if err := s.get(r, "/v2/providers", nil, &list); err != nil {
			return err
		}
		return s.show(w, r, on, "sandbox", "Sandbox", list)
	}
	var made user
	in := map[string]any{"client_user_id": r.PostFormValue("client_user_id")}
	if zone := r.PostFormValue("time_zone"); zone != "" {
		in["fallback_time_zone"] = zone
	}
	if err := s.post(r, "/v2/user/", in, &made); err != nil {
		return err
	}
	if err := s.post(r, "/v2/link/connect/demo", map[string]any{"user_id": made.ID, "provider": r.PostFormValue("provider")}, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/users/"+made.ID, http.StatusSeeOther)
	return nil
}

// refresh asks the sources of a person for new data.
func (s *Console) refresh(w http.ResponseWriter, r *http.Request, _ *session) error {
	if err := s.post(r, "/v2/user/refresh/"+userPath(r), nil, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/users/"+userPath(r), http.StatusSeeOther) //nolint:gosec // the path begins with that of the console
	return nil
}
