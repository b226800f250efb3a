package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Backend is an [exchange.LabBackend] for an invented laboratory with a JSON API. The laboratory knows an order by
// our order id, so it accepts a repeated order once. Backend has no state and is safe for concurrent use.
type Backend struct {
	url    string
	client *http.Client
}

var _ exchange.LabBackend = (*Backend)(nil)

// NewBackend returns a Backend that calls the laboratory's API at url.
func NewBackend(url string) *Backend { return &Backend{url, &http.Client{Timeout: 20 * time.Second}} }

// requisition is an order as the laboratory's JSON.
type requisition struct {
	Team  healthlab.TeamID `json:"team"`
	Tests []string         `json:"tests"`
	patient
}

// patient is the patient of an order or a report, in the laboratory's JSON.
type patient struct {
	First string         `json:"first"`
	Last  string         `json:"last"`
	Born  healthlab.Date `json:"born,omitzero"`
}

// head has the fields that identify a report and its order. The program can read them even if it cannot read the rest
// of the report.
type head struct {
	ID    string           `json:"id"`
	Order orders.OrderID   `json:"order"`
	Team  healthlab.TeamID `json:"team"`
	At    time.Time        `json:"at"`
}

// report is a message of the laboratory about an order. Kind is partial, final or corrected; the laboratory may add
// other values.
type report struct {
	head
	Kind  string `json:"kind"`
	Lines []line `json:"lines"`
	patient
}

// line is one result. Value is a number, a bound such as <5, or a comment; if the result is missing, Value is empty
// and Note says why.
type line struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	LOINC string `json:"loinc"`
	Value string `json:"value"`
	Unit  string `json:"unit"`
	Range string `json:"range"`
	Note  string `json:"note"`
}

// refused is the error for an answer whose HTTP status is neither 200 nor 204.
type refused struct{ status int }

func (e *refused) Error() string { return fmt.Sprintf("the laboratory answered %d", e.status) }

func (b *Backend) call(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, b.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := b.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: the laboratory does not answer", healthlab.Unavailable)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		if json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(out) != nil { // the error may quote a value
			return fmt.Errorf("%w: the laboratory's answer cannot be read", healthlab.Unavailable)
		}
		return nil
	case http.StatusNoContent:
		return nil
	}
	return &refused{answer.StatusCode}
}

// status returns the HTTP status of the answer that caused an error; 0 if none did.
func status(err error) int {
	var r *refused
	if errors.As(err, &r) {
		return r.status
	}
	return 0
}

// Submit implements [exchange.LabBackend]. It sends the order id, so a repeated Submit places one order.
func (b *Backend) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	in := requisition{Team: s.Order.TeamID}
	if p := s.Order.PatientDetails; p != nil && p.FirstName != nil && p.LastName != nil {
		in.patient = patient{*p.FirstName, *p.LastName, p.DOB}
	}
	for _, m := range s.Order.LabTest.Markers {
		if m.ProviderID != nil {
			in.Tests = append(in.Tests, *m.ProviderID)
		}
	}
	var out struct{ Number string }
	err := b.call(ctx, http.MethodPut, "/orders/"+s.Order.ID.String(), in, &out)
	switch {
	case status(err) == http.StatusUnprocessableEntity:
		return exchange.Accepted{}, fmt.Errorf("submit order: %w: the laboratory refused the order", healthlab.Invalid) // no retry
	case err != nil:
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", err) // any other kind is tried again later
	}
	return exchange.Accepted{SampleID: out.Number}, nil
}

// Cancel implements [exchange.LabBackend].
func (b *Backend) Cancel(ctx context.Context, _ healthlab.TeamID, id orders.OrderID) error {
	err := b.call(ctx, http.MethodDelete, "/orders/"+id.String(), nil, nil)
	switch {
	case status(err) == http.StatusNotFound: // the laboratory never got it
		return nil
	case status(err) == http.StatusConflict:
		return fmt.Errorf("cancel order: %w: the laboratory has started the order", healthlab.Precondition)
	case err != nil:
		return fmt.Errorf("cancel order: %w", err)
	}
	return nil
}

// states maps the kind of a report to the trigger that changes the state of the order, and to the status of the
// results.
var states = map[string]struct {
	on     orders.Trigger
	status labresult.Status
}{
	"partial":   {orders.PartialResult, labresult.Partial},
	"final":     {orders.FinalResult, labresult.Final},
	"corrected": {orders.CorrectedResult, labresult.Corrected},
}

// Updates implements [exchange.LabBackend]. The cursor is the number of reports that were read before. A report that
// cannot be decoded becomes a comment without a patient, which waits for a person's review, so that later reports are
// still processed.
func (b *Backend) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	after, err := strconv.Atoi("0" + cursor)
	if err != nil {
		return exchange.Batch{}, fmt.Errorf("read reports: %w: cursor: must be a number", healthlab.Invalid)
	}
	q := url.Values{"after": {strconv.Itoa(after)}, "limit": {strconv.Itoa(n)}}
	var reports []json.RawMessage
	if err := b.call(ctx, http.MethodGet, "/reports?"+q.Encode(), nil, &reports); err != nil {
		return exchange.Batch{}, fmt.Errorf("read reports: %w", err)
	}
	out := exchange.Batch{Cursor: cursor}
	for _, doc := range reports {
		var r report
		if json.Unmarshal(doc, &r) != nil {
			r = report{Lines: []line{{Name: "Report", Value: "This report could not be read. Ask the laboratory for it."}}}
			_ = json.Unmarshal(doc, &r.head) // the rest is what cannot be read
		}
		out.Messages = append(out.Messages, message(r))
		after++
		out.Cursor = strconv.Itoa(after)
	}
	return out, nil
}

// message converts a report. The service derives the type, the number and the interpretation of a result from its text
// and range, and other fields from the catalogue. A report of an unknown kind does not complete the order.
func message(r report) exchange.Message {
	state, ok := states[r.Kind]
	if !ok {
		state = states["partial"]
	}
	m := exchange.Message{
		ID: r.ID, Team: r.Team, Order: r.Order, On: state.on, At: r.At, Lab: "tidelab",
		Results: &labresult.Report{Metadata: labresult.Metadata{Status: state.status}},
	}
	if r.patient != (patient{}) {
		m.Patient = &orders.ReportedPatient{FirstName: r.First, LastName: r.Last, DOB: r.Born}
	}
	for _, l := range r.Lines {
		if l.Value == "" {
			m.Results.MissingResults = append(m.Results.MissingResults, labresult.Missing{
				Name: l.Name, Slug: l.Code, ProviderID: optional(l.Code), LOINC: optional(l.LOINC), Note: optional(l.Note),
			})
			continue
		}
		m.Results.Results = append(m.Results.Results, labresult.Result{
			Name: l.Name, Slug: l.Code, ProviderID: optional(l.Code), LOINC: optional(l.LOINC), Result: l.Value,
			Unit: optional(l.Unit), ReferenceRange: optional(l.Range), Notes: optional(l.Note),
		})
	}
	return m
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
