package push

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
)

// conflictError means that the server answers 409 to a transaction or an entry. The transaction is sent again soon.
type conflictError struct{ refusal ehr.Refusal }

func (e *conflictError) Error() string {
	return "the server answers HTTP status 409: the transaction conflicts with another change"
}

// refusedError means that the server refuses the content of a transaction, so that sending it again does not help.
type refusedError struct{ refusal ehr.Refusal }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the server refuses the transaction or its Patient with HTTP status %d", e.refusal.Status)
}

type operationOutcome struct {
	ResourceType string `json:"resourceType"`
	Issue        []struct {
		Code       string   `json:"code"`
		Expression []string `json:"expression"`
		Location   []string `json:"location"`
	} `json:"issue"`
}

// Limits of what is kept of an OperationOutcome.
const (
	mostIssues = 10
	mostCode   = 100
)

// refusal reads the reason of a refusal from an OperationOutcome. It returns false if text is not one.
func refusal(status int, text []byte) (ehr.Refusal, bool) {
	out := ehr.Refusal{Status: status, Codes: []string{}, Expressions: []string{}}
	var o operationOutcome
	if json.Unmarshal(text, &o) != nil || o.ResourceType != "OperationOutcome" {
		return out, false
	}
	for _, issue := range o.Issue {
		if len(out.Codes) == mostIssues {
			break
		}
		if isCode(issue.Code) && !slices.Contains(out.Codes, issue.Code) {
			out.Codes = append(out.Codes, issue.Code)
		}
		for _, path := range slices.Concat(issue.Expression, issue.Location) {
			if len(out.Expressions) < mostIssues && isPath(path) && !slices.Contains(out.Expressions, path) {
				out.Expressions = append(out.Expressions, path)
			}
		}
	}
	return out, true
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func isCode(text string) bool {
	return text != "" && len(text) <= mostCode && strings.Trim(text, letters+"-") == ""
}

// isPath reports whether a text consists of element names with indexes, such as Bundle.entry[3].resource.code. An
// expression with a literal is no path, because the literal may be a value of the person.
func isPath(text string) bool {
	if text == "" || len(text) > 2*mostCode {
		return false
	}
	for part := range strings.SplitSeq(text, ".") {
		name, index, ok := strings.Cut(part, "[")
		if name == "" || strings.Trim(name, letters) != "" || ok && strings.Trim(strings.TrimSuffix(index, "]"), "0123456789") != "" {
			return false
		}
	}
	return true
}

// read returns the outcome of a transaction of n entries: for each entry nil or the reason of its refusal. The error
// is a holdError, a conflictError, or a refusedError about the transaction as a whole.
func (a *answer) read(n int) ([]*ehr.Refusal, error) {
	if a.status == http.StatusOK {
		return a.entries(n)
	}
	why, ok := refusal(a.status, a.body)
	switch {
	case a.status == http.StatusConflict:
		return nil, &conflictError{why}
	case a.status == http.StatusRequestEntityTooLarge, isRefusal(a.status) && ok:
		return nil, &refusedError{why}
	}
	return nil, &holdError{fmt.Sprintf("the server answers the transaction with HTTP status %d", a.status), a.after}
}

func isRefusal(status int) bool {
	// These statuses mean that the caller, the moment or the address is wrong, not the content.
	return status >= 400 && status < 500 && !slices.Contains([]int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusMethodNotAllowed,
	}, status)
}

// entries returns the outcome of each entry of a transaction of n entries: nil, or the reason of its refusal.
func (a *answer) entries(n int) ([]*ehr.Refusal, error) {
	var b struct {
		ResourceType string `json:"resourceType"`
		Entry        []struct {
			Response struct {
				Status  string          `json:"status"`
				Outcome json.RawMessage `json:"outcome"`
			} `json:"response"`
		} `json:"entry"`
	}
	if json.Unmarshal(a.body, &b) != nil || b.ResourceType != "Bundle" || len(b.Entry) != n {
		return nil, &holdError{reason: "the server's answer is not a Bundle with one entry for each entry of the transaction"}
	}
	out := make([]*ehr.Refusal, n)
	for i, e := range b.Entry {
		code, _, _ := strings.Cut(e.Response.Status, " ")
		status, err := strconv.Atoi(code)
		switch {
		case err != nil:
			return nil, &holdError{reason: "the server's answer has an entry without an HTTP status in response.status"}
		case status >= 200 && status < 300:
		case status == http.StatusConflict:
			return nil, &conflictError{ehr.Refusal{Status: status, Codes: []string{}, Expressions: []string{}}}
		case isRefusal(status):
			why, _ := refusal(status, e.Response.Outcome)
			out[i] = &why
		default:
			return nil, &holdError{reason: fmt.Sprintf("the server answers an entry of the transaction with HTTP status %d", status), after: a.after}
		}
	}
	return out, nil
}
