package console

import (
	"net/http"
	"net/url"
	"time"
)

type endpoint struct {
	ID       string `json:"id"`
	URL      string `json:"url"`
	Disabled bool   `json:"disabled"`
	Reason   string `json:"disabled_reason"`
}

type attempt struct {
	At        time.Time `json:"at"`
	MessageID string    `json:"message_id"`
	Event     string    `json:"event_type"`
	Attempt   int       `json:"attempt"`
	Status    *int      `json:"status_code"`
	Duration  int       `json:"duration_ms"`
	State     string    `json:"state"`
	Reason    string    `json:"reason"`
}

// webhooks is the path of the team's endpoints below the organisation.
func (s *console) webhooks() string { return "/team/" + s.Team + "/" + s.Environment + "/webhook" }

// events lists the endpoints, and the attempts of the chosen one.
func (s *console) events(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		Endpoints []endpoint `json:"data"`
		Chosen    string     `json:"-"`
		Message   string     `json:"-"`
		Attempts  []attempt  `json:"-"`
		Next      string     `json:"-"`
	}
	if err := s.manage(r, on, http.MethodGet, s.webhooks(), nil, &data); err != nil {
		return err
	}
	data.Chosen, data.Message = r.FormValue("webhook"), r.FormValue("message_id")
	if data.Chosen == "" && len(data.Endpoints) > 0 {
		data.Chosen = data.Endpoints[0].ID
	}
	if data.Chosen != "" {
		q := url.Values{"limit": {"50"}}
		for _, name := range []string{"message_id", "next_cursor"} {
			if v := r.FormValue(name); v != "" {
				q.Set(name, v)
			}
		}
		var page struct {
			Data []attempt `json:"data"`
			Next string    `json:"next_cursor"`
		}
		if err := s.manage(r, on, http.MethodGet, s.webhooks()+"/"+url.PathEscape(data.Chosen)+"/attempt", q, &page); err != nil {
			return err
		}
		data.Attempts = page.Data
		if page.Next != "" {
			q.Set("webhook", data.Chosen)
			q.Set("next_cursor", page.Next)
			data.Next = "?" + q.Encode()
		}
	}
	return s.show(w, r, on, "events", "Events", data)
}

// resend sends one message to an endpoint once more.
func (s *console) resend(w http.ResponseWriter, r *http.Request, on *session) error {
	id := r.PathValue("webhook")
	err := s.manage(r, on, http.MethodPost, s.webhooks()+"/"+url.PathEscape(id)+"/message/"+url.PathEscape(r.PathValue("message"))+"/retry", nil, nil)
	if err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/events?"+url.Values{"webhook": {id}}.Encode(), http.StatusSeeOther)
	return nil
}
