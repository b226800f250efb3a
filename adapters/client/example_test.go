package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/client"
)

// A user is created, data is uploaded, and the samples are read.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(recorded))
	defer service.Close()
	c, err := client.New(service.URL, "sk_us_example", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	user, err := c.CreateUser(ctx, client.NewUser{ClientUserID: "member-42", FallbackTimeZone: new("Europe/Berlin")})
	if err != nil {
		fmt.Println(err)
		return
	}
	counts, err := c.UploadSamples(ctx, user.UserID, "heartrate", client.SampleUpload{
		Provider: "manual", Source: &client.UploadSource{Type: new("app")},
		Data: []client.SampleIn{{Timestamp: new(time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC)), Unit: "bpm", Value: 61}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("new:", counts.New)
	for group, err := range c.Samples(ctx, user.UserID, "heartrate", url.Values{"start_date": {"2026-03-01"}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, sample := range group.Data {
			fmt.Println(sample.Value, sample.Unit)
		}
	}
	// Output:
	// new: 1
	// 61 bpm
}

// An error has the status, the stable name and the problems of fields.
func ExampleError() {
	service := httptest.NewServer(http.HandlerFunc(recorded))
	defer service.Close()
	c, err := client.New(service.URL, "sk_us_example", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.CreateUser(context.Background(), client.NewUser{})
	if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusUnprocessableEntity {
		for _, p := range e.Problems {
			fmt.Println(p.Field, p.Type)
		}
	}
	// Output: body.client_user_id string_length
}

// recorded answers as a service does.
func recorded(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v2/user" && r.ContentLength > 50:
		fmt.Fprint(w, `{"user_id": "3f0c2a51-7d0e-4e5b-9a52-0c1f6e0a9d11", "client_user_id": "member-42"}`)
	case r.Method == http.MethodPost && r.URL.Path == "/v2/user":
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"detail": [{"loc": ["body", "client_user_id"], "msg": "must have 1 to 256 characters", "type": "string_length"}]}`)
	case r.Method == http.MethodPost:
		fmt.Fprint(w, `{"new": 1, "changed": 0, "same": 0, "dropped": 0}`)
	default:
		fmt.Fprint(w, `{"groups": {"manual": [{"source": {"provider": "manual"}, "data": [{"unit": "bpm", "value": 61}]}]}, "next_cursor": null}`)
	}
}
