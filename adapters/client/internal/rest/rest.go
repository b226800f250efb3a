// Package rest sends requests, retries those that are safe to retry, and reads the error bodies of the contract.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// firstWait is the longest wait before the first repeat. The limit doubles with each repeat.
const firstWait = 250 * time.Millisecond

// errAnswer is the error of an answer that cannot be decoded. It omits the cause, because the cause may contain values
// of a person.
var errAnswer = errors.New("answer: must be JSON as in the contract")

// List decodes text, a JSON array.
func List[T any](text []byte) (list []T, err error) {
	if json.Unmarshal(text, &list) != nil {
		return nil, errAnswer
	}
	return list, nil
}

// Options are the options of a [Sender]: see those of package client.
type Options struct {
	HTTP                           *http.Client
	ManagementKey                  string
	KeyHeader, ManagementKeyHeader string
	Retries                        int
	MaxWait                        time.Duration
}

// Request is a call of an operation.
type Request struct {
	Method, Path   string
	Query          url.Values
	IdempotencyKey string
	Body, Answer   any
}

// Fault is an answer with status 300 or above.
type Fault struct {
	Status        int
	Type, Message string
	Problems      []Problem
	RequestID     string
	RetryAfter    time.Duration
}

// Problem is a problem of one field: the path of the field, a message and the stable name of the rule.
type Problem struct{ Field, Message, Type string }

// Sender sends requests to one service. Safe for concurrent use.
type Sender struct {
	base, key string
	options   Options
}

// New returns a sender to the service at base.
func New(base, key string, o Options) (*Sender, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("base: must be an http or https URL with a host, without user, query and fragment")
	}
	h := *cmp.Or(o.HTTP, &http.Client{Timeout: time.Minute})
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTP = &h
	o.KeyHeader = cmp.Or(o.KeyHeader, "x-service-api-key")
	o.ManagementKeyHeader = cmp.Or(o.ManagementKeyHeader, "x-management-key")
	o.Retries = cmp.Or(o.Retries, 3)
	o.MaxWait = cmp.Or(o.MaxWait, 30*time.Second)
	return &Sender{base: strings.TrimRight(base, "/"), key: key, options: o}, nil
}

// Base returns the address of the service.
func (s *Sender) Base() string { return s.base }

// Send calls an operation and decodes its answer. It returns a Fault for an answer with status 300 or above.
func (s *Sender) Send(ctx context.Context, r Request) (*Fault, error) {
	if err := checkPath(r.Path); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = json.Marshal(r.Body); err != nil {
			return nil, fmt.Errorf("encode body: %w", err)
		}
	}
	fault, answer, err := s.attempts(ctx, r, body)
	if fault != nil || err != nil {
		return fault, err
	}
	if r.Answer != nil && json.Unmarshal(answer, r.Answer) != nil {
		return nil, errAnswer
	}
	return nil, nil
}

// attempts sends a request, and repeats it as described at Client.Do. It returns the result of the last attempt, or the
// context's error if ctx ends during a wait.
func (s *Sender) attempts(ctx context.Context, r Request, body []byte) (*Fault, []byte, error) {
	for attempt := 0; ; attempt++ {
		fault, answer, err := s.attempt(ctx, r, body)
		if attempt >= s.options.Retries || ctx.Err() != nil || !repeatable(r) || err == nil && !fault.temporary() {
			return fault, answer, err
		}
		bound := min(firstWait<<min(attempt, 10), s.options.MaxWait)
		wait := bound/2 + rand.N(bound/2+1) //nolint:forbidigo // spreads the repeats of many clients
		if fault != nil {
			wait = max(wait, fault.RetryAfter)
		}
		if wait > s.options.MaxWait {
			return fault, answer, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, fmt.Errorf("wait before a repeat: %w", ctx.Err())
		case <-timer.C:
		}
	}
}

// repeatable reports whether sending a request twice has the same effect as sending it once.
func repeatable(r Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.IdempotencyKey != ""
}

// attempt sends a request once. It removes the URL from errors, because the URL may name a person.
func (s *Sender) attempt(ctx context.Context, r Request, body []byte) (*Fault, []byte, error) {
	target := s.base + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, r.Method, target, bytes.NewReader(body))
	if err != nil {
		return nil, nil, errors.New("request: must have a valid HTTP method and path")
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if r.IdempotencyKey != "" {
		q.Header.Set("x-idempotency-key", r.IdempotencyKey)
	}
	if strings.HasPrefix(r.Path, "/v1/org/") {
		q.Header.Set(s.options.ManagementKeyHeader, s.options.ManagementKey)
	} else {
		q.Header.Set(s.options.KeyHeader, s.key)
	}
	answer, err := s.options.HTTP.Do(q)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, nil, fmt.Errorf("send request: %w", err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, nil, fmt.Errorf("read answer: %w", err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return faultOf(answer, text), nil, nil
	}
	return nil, text, nil
}

// temporary reports whether a repeat of the request can succeed. f may be nil.
func (f *Fault) temporary() bool {
	if f == nil {
		return false
	}
	switch f.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return f.Type == "IDEMPOTENCY_IN_PROGRESS"
}

// faultOf reads an error body: the error type and text, or the problems of an invalid request.
func faultOf(answer *http.Response, text []byte) *Fault {
	f := &Fault{Status: answer.StatusCode, RequestID: answer.Header.Get("X-Request-Id"), RetryAfter: retryAfter(answer.Header)}
	var one struct {
		Detail struct {
			Type    string `json:"error_type"`
			Message string `json:"error_message"`
		} `json:"detail"`
	}
	if json.Unmarshal(text, &one) == nil {
		f.Type, f.Message = one.Detail.Type, one.Detail.Message
		return f
	}
	var many struct {
		Detail []struct {
			Loc  []any  `json:"loc"`
			Msg  string `json:"msg"`
			Type string `json:"type"`
		} `json:"detail"`
	}
	if json.Unmarshal(text, &many) != nil {
		return f // the answer of a proxy, without an error of the contract
	}
	for _, p := range many.Detail {
		parts := make([]string, len(p.Loc))
		for i, part := range p.Loc {
			parts[i] = fmt.Sprint(part)
		}
		f.Problems = append(f.Problems, Problem{Field: strings.Join(parts, "."), Message: p.Msg, Type: p.Type})
	}
	return f
}

// retryAfter returns the wait in the header Retry-After, in seconds or as a time relative to Date; 0 if absent.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	at, err := http.ParseTime(text)
	sent, err2 := http.ParseTime(h.Get("Date"))
	if err != nil || err2 != nil {
		return 0
	}
	return max(at.Sub(sent), 0)
}
