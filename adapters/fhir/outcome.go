package fhir

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// mediaType is the content type of all answers.
const mediaType = "application/fhir+json; charset=utf-8"

type operationOutcome struct {
	ResourceType string  `json:"resourceType"`
	Issue        []issue `json:"issue"`
}

type issue struct {
	Severity    string   `json:"severity"`
	Code        string   `json:"code"`
	Diagnostics string   `json:"diagnostics,omitempty"`
	Expression  []string `json:"expression,omitempty"`
}

// issueTypes maps HTTP statuses to the issue codes of an OperationOutcome. Other statuses have the code processing.
var issueTypes = map[int]string{
	http.StatusBadRequest: "invalid", http.StatusUnprocessableEntity: "invalid", http.StatusUnauthorized: "login", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "not-found", http.StatusMethodNotAllowed: "not-supported", http.StatusConflict: "conflict", http.StatusTooManyRequests: "throttled",
	http.StatusInternalServerError: "exception", http.StatusNotImplemented: "not-supported", http.StatusServiceUnavailable: "transient",
	http.StatusRequestEntityTooLarge: "too-long", http.StatusNotAcceptable: "not-supported", http.StatusUnsupportedMediaType: "not-supported",
}

// refuse writes the answer to an error.
func refuse(w http.ResponseWriter, f httpapi.Refusal) error {
	for name, values := range f.Header {
		w.Header()[name] = values
	}
	code, ok := issueTypes[f.Status]
	if !ok {
		code = "processing"
	}
	out := operationOutcome{ResourceType: "OperationOutcome"}
	for _, p := range f.Problems {
		out.Issue = append(out.Issue, problem(p))
	}
	if len(out.Issue) == 0 {
		out.Issue = []issue{{Severity: "error", Code: code, Diagnostics: f.Msg}}
	}
	return write(w, f.Status, out)
}

func refuseUnknown(w http.ResponseWriter, kind string) error {
	return refuse(w, httpapi.Refusal{Status: http.StatusNotFound, Msg: "the team has no " + kind + " with this id"})
}

func problem(p healthlab.Problem) issue {
	var place []string
	for _, part := range p.Path {
		place = append(place, fmt.Sprint(part))
	}
	at := strings.Join(place, ".")
	code := "invalid"
	if p.Code == "unknown_parameter" {
		code = "not-supported"
	}
	return issue{Severity: "error", Code: code, Diagnostics: at + ": " + p.Msg, Expression: []string{"http." + at}}
}

func write(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if _, err = w.Write(b); err != nil {
		return fmt.Errorf("send answer: %w", err)
	}
	return nil
}
