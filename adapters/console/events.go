package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/webhook"
)

type endpoint struct {
	ID          string   `json:"id"`
	URL         string   `json:"url"`
	Description string   `json:"description"`
	Types       []string `json:"filter_types"` // nil means all types
	Rate        *int     `json:"rate_limit"`
	Disabled    bool     `json:"disabled"`
	Reason      string   `json:"disabled_reason"`
	// FailingSince is nil if the last attempt succeeded.
	FailingSince *time.Time `json:"failing_since"`
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
	Trigger   string    `json:"trigger"`
	Outcome   string    `json:"outcome"`
	Head      string    `json:"response_head"`
	Response  string    `json:"response"`
}

// minuteForm is the layout of times in HTML forms.
const minuteForm = "2006-01-02T15:04"

func (s *Console) webhooks() string { return s.teamPath() + "/webhook" }

// events lists the endpoints, and the delivery attempts of the selected one.
func (s *Console) events(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		Endpoints []endpoint `json:"data"`
		endpointPage
		Chosen   string    `json:"-"`
		Message  string    `json:"-"`
		Attempts []attempt `json:"-"`
		Next     string    `json:"-"`
		Since    string    `json:"-"`
		Until    string    `json:"-"`
		Queued   string    `json:"-"`
	}
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	data.EventTypes = c.eventTypes()
	now := s.Now().UTC()
	data.Since, data.Until, data.Queued = now.Add(-24*time.Hour).Format(minuteForm), now.Add(time.Minute).Format(minuteForm), r.FormValue("queued")
	if err := s.manage(r, on, http.MethodGet, s.webhooks(), nil, nil, &data); err != nil {
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
		if err := s.manage(r, on, http.MethodGet, s.webhooks()+"/"+url.PathEscape(data.Chosen)+"/attempt", q, nil, &page); err != nil {
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

// resend makes the API send one message to an endpoint once more.
func (s *Console) resend(w http.ResponseWriter, r *http.Request, on *session) error {
	id := r.PathValue("webhook")
	err := s.manage(r, on, http.MethodPost, s.webhooks()+"/"+url.PathEscape(id)+"/message/"+url.PathEscape(r.PathValue("message"))+"/retry", nil, nil, nil)
	if err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/events?"+url.Values{"webhook": {id}}.Encode(), http.StatusSeeOther)
	return nil
}

// recover makes the API send the failed messages of a time window once more.
func (s *Console) recover(w http.ResponseWriter, r *http.Request, on *session) error {
	in := map[string]any{}
	for _, name := range []string{"since", "until"} {
		text := r.PostFormValue(name)
		if name == "until" && text == "" {
			continue
		}
		at, err := time.Parse(minuteForm, text)
		if err != nil {
			return &apiError{Status: http.StatusUnprocessableEntity, Message: name + ": must be a date and time like 2026-01-31T08:30"}
		}
		in[name] = at.Format(time.RFC3339)
	}
	id := r.PathValue("webhook")
	var out struct {
		Queued int `json:"queued"`
	}
	if err := s.manage(r, on, http.MethodPost, s.webhooks()+"/"+url.PathEscape(id)+"/recover", nil, in, &out); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/events?"+url.Values{"webhook": {id}, "queued": {strconv.Itoa(out.Queued)}}.Encode(), http.StatusSeeOther)
	return nil
}

// signature checks the signature of a message by Standard Webhooks. The fields of the form are not stored or logged,
// and are not part of a URL.
func (s *Console) signature(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		Checked, OK                      bool
		ID, Timestamp, Body, Given, Text string
	}
	if r.Method != http.MethodPost {
		return s.show(w, r, on, "signature", "Check a signature", data)
	}
	data.Checked = true
	data.ID, data.Timestamp = strings.TrimSpace(r.PostFormValue("id")), strings.TrimSpace(r.PostFormValue("timestamp"))
	data.Body, data.Given = r.PostFormValue("body"), strings.TrimSpace(r.PostFormValue("signature"))
	secret, err := webhook.ParseSecret(strings.TrimSpace(r.PostFormValue("secret")))
	if err != nil {
		data.Text = "secret: must be whsec_ and base64, as the endpoint's page gives it"
		return s.show(w, r, on, "signature", "Check a signature", data)
	}
	header := http.Header{webhook.HeaderID: {data.ID}, webhook.HeaderTimestamp: {data.Timestamp}, webhook.HeaderSignature: {data.Given}}
	// Forms send line ends as CR LF, but the signed JSON body has LF.
	for _, body := range []string{data.Body, strings.ReplaceAll(data.Body, "\r\n", "\n")} {
		if err = webhook.VerifyArchived([]byte(body), header, secret); err == nil {
			data.OK, data.Text = true, "The signature is of this message and secret."
			return s.show(w, r, on, "signature", "Check a signature", data)
		}
	}
	data.Text = "The signature is not of this message and secret: compare id, timestamp and the bytes of the body."
	return s.show(w, r, on, "signature", "Check a signature", data)
}
