package console

import (
	"net/http"
	"net/url"
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
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"expires_at"`
	Used    time.Time `json:"last_used_at"`
}

// keysTeam returns a team and the API path of its keys. The form field team names the team; without it, it is the team
// of the console.
func (s *Console) keysTeam(r *http.Request, on *session) (t team, path string, err error) {
	id := r.FormValue("team")
	if id == "" {
		id = s.Team
	}
	err = s.manage(r, on, http.MethodGet, "/team/"+url.PathEscape(id), nil, nil, &t)
	return t, "/team_api_keys/" + s.Environment + "/" + url.PathEscape(t.Region), err
}

func (s *Console) team(w http.ResponseWriter, r *http.Request, on *session) error {
	return s.showTeam(w, r, on, nil)
}

func (s *Console) toTeam(w http.ResponseWriter, r *http.Request, _ *session) error {
	http.Redirect(w, r, s.Path+"/team", http.StatusSeeOther)
	return nil
}

// showTeam shows the page of teams, API keys and settings. made is a new key, whose value is shown once; nil for none.
func (s *Console) showTeam(w http.ResponseWriter, r *http.Request, on *session, made *apiKey) error {
	var data struct {
		Teams    []team `json:"teams"`
		Team     string
		Chosen   team     // team whose keys are shown
		Keys     []apiKey `json:"api_keys"`
		Made     *apiKey
		Settings []setting
		Scopes   []string
		Now      time.Time
		Saved    bool // the settings were saved
	}
	data.Team, data.Made, data.Now, data.Saved = s.Team, made, s.Now(), r.FormValue("saved") != ""
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	data.Scopes = c.Components.Schemas["APIKeyScope"].Enum
	if err := s.optional(s.manage(r, on, http.MethodGet, "/team", url.Values{"limit": {"100"}}, nil, &data)); err != nil {
		return err
	}
	var path string
	if data.Chosen, path, err = s.keysTeam(r, on); err != nil {
		return err
	}
	if err := s.optional(s.manage(r, on, http.MethodGet, path, url.Values{"team_id": {data.Chosen.ID}}, nil, &data)); err != nil {
		return err
	}
	if data.Settings, err = s.settings(r, on, c); err != nil {
		return err
	}
	return s.show(w, r, on, "team", "Team", data)
}

func (s *Console) makeKey(w http.ResponseWriter, r *http.Request, on *session) error {
	of, path, err := s.keysTeam(r, on)
	if err != nil {
		return err
	}
	var made apiKey
	in := map[string]any{"team_id": of.ID, "label": r.PostFormValue("label")}
	if scopes := r.PostForm["scope"]; len(scopes) > 0 {
		in["scopes"] = scopes
	}
	if text := r.PostFormValue("expires"); text != "" {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return &apiError{Status: http.StatusUnprocessableEntity, Message: "expires: must be a date like 2026-01-31"}
		}
		in["expires_at"] = at.Format(time.RFC3339)
	}
	if err := s.manage(r, on, http.MethodPost, path, nil, in, &made); err != nil {
		return err
	}
	return s.showTeam(w, r, on, &made)
}

// rotateKey replaces a key. The old key works for one more day.
func (s *Console) rotateKey(w http.ResponseWriter, r *http.Request, on *session) error {
	_, path, err := s.keysTeam(r, on)
	if err != nil {
		return err
	}
	var made apiKey
	if err := s.manage(r, on, http.MethodPost, path+"/"+url.PathEscape(r.PathValue("id"))+"/rotate", nil, struct{}{}, &made); err != nil {
		return err
	}
	return s.showTeam(w, r, on, &made)
}

// makeTeam creates a team of the organisation.
func (s *Console) makeTeam(w http.ResponseWriter, r *http.Request, on *session) error {
	if err := s.manage(r, on, http.MethodPost, "/team", nil, map[string]any{"name": r.PostFormValue("name")}, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/team", http.StatusSeeOther)
	return nil
}

func (s *Console) deleteKey(w http.ResponseWriter, r *http.Request, on *session) error {
	of, path, err := s.keysTeam(r, on)
	if err != nil {
		return err
	}
	if err := s.manage(r, on, http.MethodDelete, path, url.Values{"key_id": {r.PathValue("id")}}, nil, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/team?"+url.Values{"team": {of.ID}}.Encode(), http.StatusSeeOther)
	return nil
}
