package polar

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
)

// listen responds to the ping with which the provider tests the URL, or reads a message.
func listen(l *rest.Listening, m linking.Message) (linking.ListenResult, error) {
	var v struct {
		Event  string          `json:"event"`
		User   rest.ID         `json:"user_id"`
		Entity json.RawMessage `json:"entity_id"`
		Time   string          `json:"timestamp"`
		Date   healthlab.Date  `json:"date"`
		From   healthlab.Date  `json:"from"`
	}
	wrong := json.Unmarshal(m.Body, &v)
	answered := linking.ListenResult{Status: http.StatusOK}
	switch {
	case wrong == nil && v.Event == "PING":
		return answered, nil // Polar sends the ping before it shows the key
	case !rest.SignedHex(rest.Header(&m, "Polar-Webhook-Signature"), l.VerifyToken, m.Body):
		return linking.ListenResult{}, rest.NotTheirs()
	case wrong != nil:
		return linking.ListenResult{}, rest.NotReadable()
	}
	resources := l.Announced(v.Event)
	if resources == nil {
		return answered, nil // an event that is not read
	}
	if v.Date.IsZero() {
		v.Date = v.From
	}
	since := m.At
	if at := v.Date.At(time.UTC); !v.Date.IsZero() && at.Before(since) {
		since = at
	}
	answered.Notifications = []linking.Notification{{
		ID:             strings.Join([]string{v.Event, v.User.String(), string(v.Entity), v.Date.String(), v.Time}, " "),
		ExternalUserID: v.User.String(), Resources: resources, Since: since.Add(-rest.Day),
	}}
	return answered, nil
}
