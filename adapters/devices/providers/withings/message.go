package withings

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
)

// aboutMe is the category of messages about the person's account.
const aboutMe = "46"

// listen responds to the HEAD request with which the provider tests the URL, or reads a message.
func listen(l *rest.Listening, m linking.Message) (linking.ListenResult, error) {
	if m.Method == http.MethodHead {
		return linking.ListenResult{Status: http.StatusOK}, nil
	}
	form, err := url.ParseQuery(string(m.Body))
	if !rest.Same(rest.Query(&m, "token"), l.VerifyToken) && !rest.Same(form.Get("token"), l.VerifyToken) {
		return linking.ListenResult{}, rest.NotTheirs()
	}
	category := form.Get("appli")
	if _, bad := strconv.Atoi(category); err != nil || bad != nil || form.Get("userid") == "" {
		return linking.ListenResult{}, rest.NotReadable()
	}
	result := linking.ListenResult{Status: http.StatusOK}
	n := linking.Notification{ExternalUserID: form.Get("userid"), Resources: l.Announced(category)}
	// A growing day is announced by equal messages, so the minute distinguishes them.
	n.ID = fmt.Sprintf("%s %d", m.Body, m.At.Truncate(time.Minute).Unix())
	switch what := form.Get("action"); {
	case category == aboutMe && (what == "delete" || what == "unlink"):
		n.Resources, n.Unlinked = nil, true
	case n.Resources == nil:
		return result, nil // a category that is not read
	}
	if seconds, err := strconv.ParseInt(form.Get("startdate"), 10, 64); err == nil {
		n.Since = time.Unix(seconds, 0).UTC()
	} else if day, err := time.Parse(time.DateOnly, form.Get("date")); err == nil {
		n.Since = day.Add(-rest.Day)
	}
	result.Notifications = []linking.Notification{n}
	return result, nil
}
