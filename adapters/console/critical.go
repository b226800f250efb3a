package console

import (
	"net/http"
	"net/url"
	"time"
)

// criticalResult is a critical result as the API publishes it.
type criticalResult struct {
	ID     string `json:"id"`
	Order  string `json:"order_id"`
	User   string `json:"user_id"`
	Status string `json:"status"`
	Result struct {
		Code  string `json:"code"`
		Name  string `json:"name"`
		Value string `json:"value"`
		Unit  string `json:"unit"`
		Range string `json:"reference_range"`
	} `json:"result"`
	Escalation []struct {
		To     string     `json:"to"`
		Due    time.Time  `json:"due_at"`
		Passed *time.Time `json:"passed_at"`
	} `json:"escalation"`
	Next    *time.Time      `json:"next_step_at"`
	History []criticalEntry `json:"history"`
	Opened  time.Time       `json:"opened_at"`
}

type criticalEntry struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Step   int       `json:"step"`
	To     string    `json:"to"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// Waits reports whether the result is not acknowledged yet.
func (c *criticalResult) Waits() bool { return c.Status == "open" || c.Status == "escalated" }

func (s *Console) criticalResults(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		cursorList
		Data  []criticalResult `json:"data"`
		Total int              `json:"total"`
	}
	if err := s.readCursorList(r, "/v3/critical_result", &data, &data.cursorList); err != nil {
		return err
	}
	return s.show(w, r, on, "critical", "Critical results", data)
}

func (s *Console) criticalResult(w http.ResponseWriter, r *http.Request, on *session) error {
	var data criticalResult
	if err := s.get(r, "/v3/critical_result/"+url.PathEscape(r.PathValue("id")), nil, &data); err != nil {
		return err
	}
	return s.show(w, r, on, "criticalresult", "Critical result", &data)
}

// acknowledge records which person was told about a critical result, and the value that the person repeated.
func (s *Console) acknowledge(w http.ResponseWriter, r *http.Request, _ *session) error {
	id := url.PathEscape(r.PathValue("id"))
	back := map[string]string{"value": r.PostFormValue("value")}
	if unit := r.PostFormValue("unit"); unit != "" {
		back["unit"] = unit
	}
	in := map[string]any{"acknowledged_by": r.PostFormValue("acknowledged_by"), "read_back": back}
	if err := s.post(r, "/v3/critical_result/"+id+"/acknowledge", in, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/critical/"+id, http.StatusSeeOther)
	return nil
}
