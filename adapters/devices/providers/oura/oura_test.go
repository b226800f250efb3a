package oura_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/oura"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := oura.Read("heartrate", []byte(`{"data": [{"timestamp": "2026-03-04T08:05:00Z", "bpm": 61, "source": "awake"}]}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// heartrate from ring
	//   sample {"timestamp":"2026-03-04T08:05:00+00:00","unit":"bpm","value":61}
}

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := oura.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = oura.Read("strain", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = oura.Read("sleep", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// A lapsed membership is tried again. Kinds whose scopes may be refused have no data.
func TestPull_lapsedMembershipIsRetried(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(server.Close)
	c, err := oura.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{
		Origin: server.URL, Guard: &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	require.NoError(t, err)
	secret, err := c.Encode(linking.Tokens{Access: "access"})
	require.NoError(t, err)
	to := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, resource := range oura.Record().Resources {
		t.Run(resource.Resource, func(t *testing.T) {
			page, err := c.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: resource.Resource, From: to.AddDate(0, 0, -1), To: to})
			if resource.Resource == "vo2_max" || resource.Resource == "device" {
				require.NoError(t, err)
				require.Empty(t, page.Items)
				return
			}
			require.ErrorIs(t, err, healthlab.Unavailable)
		})
	}
}
