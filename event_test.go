package healthlab_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

// A log shows which event it was, and neither its payload nor whom it is about.
func TestEvent_printsNoPayloadUserOrKey(t *testing.T) {
	e := healthlab.Event{
		ID:   uuid.MustParse(textA),
		Type: "labtest.result.critical",
		Team: healthlab.TeamID{UUID: uuid.MustParse(textA)},
		User: healthlab.UserID{UUID: uuid.MustParse(textB)},
		Key:  "planted-key",
		Seq:  7,
		At:   time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC),
		Data: []byte(`{"value":"planted-result"}`),
	}
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			slog.New(handler(&b)).Info("sent", "event", e)
			require.Contains(t, b.String(), "labtest.result.critical")
			require.Contains(t, b.String(), textA)
			require.NotContains(t, b.String(), "planted")
			require.NotContains(t, b.String(), textB)
		})
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		text := fmt.Sprintf(verb, e)
		require.NotContains(t, text, "planted", verb)
		require.NotContains(t, text, textB, verb)
		require.NotContains(t, text, fmt.Sprint([]byte("planted")[:3])[1:], verb)
	}
}

func TestMode_printsItsName(t *testing.T) {
	for mode, want := range map[healthlab.Mode]string{
		healthlab.Independent: "independent",
		healthlab.Ordered:     "ordered",
		healthlab.Latest:      "latest",
		healthlab.Mode(9):     "independent",
	} {
		require.Equal(t, want, mode.String())
	}
}
