package healthlab_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

type diagnosis struct {
	healthlab.Private

	Text  string `json:"text"`
	Value int    `json:"value"`
}

// Each verb, each handler of logs, and each place in which a private value can stand.
func TestPrivate_printsNoField(t *testing.T) {
	v := diagnosis{Text: "planted", Value: 424242}
	inside := struct {
		Name string
		Of   diagnosis
	}{"name", v}
	for _, shown := range []any{v, &v, inside, []diagnosis{v}, map[string]diagnosis{"k": v}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%o", "%t", "%5.2f", "%c"} {
			out := fmt.Sprintf(verb, shown)
			require.NotContains(t, out, "planted", verb)
			require.NotContains(t, out, "424242", verb)
			require.NotContains(t, out, "6792f", verb) // in hexadecimal
		}
		require.NotContains(t, fmt.Sprintln(shown), "planted")
	}
	var out bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("seen", "value", v, "pointer", &v)
	}
	require.NotContains(t, out.String(), "planted")
	require.Contains(t, out.String(), "[redacted]")
}

func TestPrivate_isEncodedAsJSONInFull(t *testing.T) {
	b, err := json.Marshal(diagnosis{Text: "planted", Value: 1})
	require.NoError(t, err)
	require.JSONEq(t, `{"text":"planted","value":1}`, string(b))
}
