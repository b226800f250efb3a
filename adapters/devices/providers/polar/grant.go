package polar

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
)

// register registers the person with the provider, and returns the provider's id. The registration sends that id as
// member-id, so a conflict means that the same person is already registered.
func register(ctx context.Context, s *rest.SignedIn) (string, error) {
	id, err := rest.AccountIn(s.Token, "x_user_id")
	if err != nil {
		return "", err
	}
	body, _ := json.Marshal(map[string]string{"member-id": id}) // strings always encode
	if _, err := s.Do(ctx, http.MethodPost, base+users, bytes.NewReader(body)); err != nil {
		return "", err
	}
	return id, nil
}

// rates returns the rate limit of 24 hours if it is exhausted, else that of 15 minutes. Each header has one number for
// each of these windows.
func rates(h http.Header, now time.Time) []linking.RateLimit {
	pair := func(name string) (out [2]int, ok bool) {
		texts := strings.Split(h.Get(name), ",")
		for i := range out {
			n, err := strconv.Atoi(strings.TrimSpace(texts[min(i, len(texts)-1)]))
			if err != nil || n < 0 || n > 1<<30 {
				return out, false
			}
			out[i] = n
		}
		return out, len(texts) == len(out)
	}
	used, ok := pair("RateLimit-Usage")
	limit, fine := pair("RateLimit-Limit")
	reset, known := pair("RateLimit-Reset")
	if !ok || !fine || !known {
		return nil
	}
	at := func(i int) []linking.RateLimit {
		wait := min(time.Duration(reset[i])*time.Second, rest.Day)
		return []linking.RateLimit{{Scope: linking.RateApp, Remaining: max(limit[i]-used[i], 0), Reset: now.Add(wait).UTC()}}
	}
	if limit[1] <= used[1] {
		return at(1)
	}
	return at(0)
}
