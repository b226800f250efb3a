package withings

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
)

// envelope is the outer object of every response. A failed request has the HTTP status 200 and a Status other than 0.
type envelope struct {
	Status *int            `json:"status"`
	Body   json.RawMessage `json:"body"`
	Error  string          `json:"error"`
}

// maxWait is the largest accepted waiting time, in seconds.
const maxWait = 3600

// refused returns the error for the status in the body of a response; nil if the status is 0 or absent.
func refused(a *rest.Answer) error {
	var v envelope
	_ = json.Unmarshal(a.Body, &v) // without a status in the body, the HTTP status decides
	if v.Status == nil || *v.Status == 0 {
		return nil
	}
	switch n := *v.Status; {
	case n == 601:
		var wait struct {
			Seconds float64 `json:"wait_seconds"`
		}
		_ = json.Unmarshal(v.Body, &wait) // absent: no waiting time
		return &linking.RateLimitError{Scope: linking.RateApp, Wait: time.Duration(min(max(wait.Seconds, 0), maxWait) * float64(time.Second))}
	case n >= 100 && n <= 102, n == 200, n == 401:
		return fmt.Errorf("%w: the provider does not accept the token", healthlab.Unauthenticated)
	case n == 214, n == 277, n >= 2553 && n <= 2555:
		return fmt.Errorf("%w: the person has not granted a scope that this resource requires", healthlab.Invalid)
	case n >= 201 && n <= 254, n >= 260 && n <= 304, n >= 321 && n <= 353, n >= 380 && n <= 382, n == 400, n >= 501 && n <= 511,
		n == 523, n == 532, n >= 3017 && n <= 3019:
		return fmt.Errorf("%w: the provider answered with the status %d in the body, which means that the request is wrong", healthlab.Invalid, *v.Status)
	}
	return rest.Unavailable(fmt.Sprintf("answers with the status %d in the body", *v.Status), 0)
}

// unix is an instant in seconds since 1970.
type unix int64

func (t unix) time() healthlab.Time { return healthlab.At(time.Unix(int64(t), 0)) }

// byTime is a JSON object whose keys are Unix seconds. The provider writes an empty object as a list.
type byTime[T any] map[unix]T

// UnmarshalJSON reads the object. A list gives nil.
func (t *byTime[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		*t = nil
		return nil
	}
	return json.Unmarshal(b, (*map[unix]T)(t))
}

// details is a JSON object of type T. The provider writes an empty object as a list.
type details[T any] struct{ v T }

// UnmarshalJSON reads the object. A list leaves the value unchanged.
func (d *details[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return nil
	}
	return json.Unmarshal(b, &d.v)
}
