// Package compat converts answers to the shapes of existing clients where these differ from the contract.
// docs/compat.md lists the differences.
package compat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// Shapes selects the names and values that existing clients expect; httpapi.Compat describes the fields.
type Shapes struct {
	// Service replaces the word service in the names appointment_with_service and appointment_scheduling_via_service.
	// Empty changes nothing.
	Service string
	// DelegatedFlow is the value of delegated_flow in the answer about a team. Default not_delegated.
	DelegatedFlow string
}

// Rewrites reports whether the answers of an operation are converted.
func (c Shapes) Rewrites(op *server.Operation) bool {
	_, path, _ := strings.Cut(op.Pattern, " ")
	return strings.HasPrefix(path, "/v3/") || op.ID == "read_team_metrics" || op.ID == "read_team" || strings.HasPrefix(op.ID, "bulk_")
}

// Answer is a ResponseWriter that buffers an answer until [Answer.Send] converts it.
type Answer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader stores the status for Send.
func (h *Answer) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write appends to the buffered body.
func (h *Answer) Write(b []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(b)
}

// Send converts the answer and sends it.
func (h *Answer) Send(c Shapes, op *server.Operation) {
	if h.status == 0 {
		return
	}
	body := h.body.Bytes()
	if op.ID == "bulk_trigger_historical_pull" && h.status < http.StatusMultipleChoices {
		h.status, body = http.StatusOK, []byte("{}")
		h.Header().Set("Content-Type", "application/json")
	} else if op.ID == "bulk_import" && h.status == http.StatusAccepted {
		body = []byte(`{"user_ids_imported":[],"user_ids_failed":[]}`)
		h.Header().Set("Content-Type", "application/json")
	} else if strings.HasPrefix(h.Header().Get("Content-Type"), "application/json") && h.status < http.StatusMultipleChoices {
		body = c.Reshape(op, body)
	}
	h.Header().Set("Content-Length", strconv.Itoa(len(body)))
	h.ResponseWriter.WriteHeader(h.status)
	_, _ = h.ResponseWriter.Write(body) // an error means that the caller has gone
}

// Reshape returns a JSON body converted for existing clients. Keys are sorted; numbers keep their text.
func (c Shapes) Reshape(op *server.Operation, body []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return body
	}
	v = c.value(op, "", "", v)
	if team, ok := v.(map[string]any); ok && op.ID == "read_team" {
		c.topLevelKeys(team)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return body
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}

// value converts a JSON value. key is its key, and above the key of the object that contains it; either may be empty.
func (c Shapes) value(op *server.Operation, above, key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			out[c.Name(name)] = c.value(op, key, name, item)
		}
		return out
	case []any:
		for i := range v {
			v[i] = c.value(op, above, key, v[i])
		}
		return v
	case string:
		switch {
		case key == "dob" && above == "patient_details", key == "date" && op.ID == "read_team_metrics":
			return dateTime(v)
		case key == "distance" && above == "patient_service_centers":
			return number(v)
		case key == "capabilities":
			return c.Name(v)
		}
	}
	return v
}

func number(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return s
}

func dateTime(s string) string {
	if len(s) == len("2006-01-02") {
		return s + "T00:00:00+00:00"
	}
	return s
}

// Name returns a name with the word service replaced.
func (c Shapes) Name(s string) string {
	if c.Service == "" {
		return s
	}
	switch s {
	case "appointment_with_service":
		return "appointment_with_" + c.Service
	case "appointment_scheduling_via_service":
		return "appointment_scheduling_via_" + c.Service
	}
	return s
}

// topLevelKeys copies settings from a team's object configuration to the team itself, where existing clients read
// them, and adds keys that they require.
func (c Shapes) topLevelKeys(team map[string]any) {
	config, ok := team["configuration"].(map[string]any)
	if !ok {
		return
	}
	sms, _ := config["lab_tests_patient_sms_communication_enabled"].(bool)
	email, _ := config["lab_tests_patient_email_communication_enabled"].(bool)
	team["testkits_texts_enabled"] = config["texts_enabled"]
	team["lab_tests_patient_communication_enabled"] = sms || email
	team["lab_tests_patient_sms_communication_enabled"] = sms
	team["lab_tests_patient_email_communication_enabled"] = email
	config["libreview"] = map[string]any{"practice_id": map[string]any{}}
	team["delegated_flow"] = cmp.Or(c.DelegatedFlow, "not_delegated")
}

// WithoutAccept removes the key accept from the body of a query, because some clients send the header there.
func WithoutAccept(data []byte) []byte {
	var body map[string]json.RawMessage
	if json.Unmarshal(data, &body) != nil || body["accept"] == nil {
		return data // the decoder reports the error
	}
	delete(body, "accept")
	out, err := json.Marshal(body)
	if err != nil {
		return data
	}
	return out
}
