package registry_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// derived are the samples of kinds whose numbers no page has, and why.
var derived = map[string]string{
	"oura session mindfulness_minutes":                                         "the length of the session",
	"google_health daily-sleep-temperature-derivations body_temperature_delta": "a difference of two numbers",
	"google_health electrocardiogram electrocardiogram_voltage":                "digits, whose scale the recording has",
	"google_health irregular-rhythm-notification heart_rate_alert":             "one notification",
	"withings getmeas fat": "a ratio of two numbers",
}

// pagesOf returns the recorded pages of a connector by kind.
func pagesOf(t testing.TB, slug string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("../" + strings.ReplaceAll(slug, "_", "") + "/testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	pages := map[string][]byte{}
	for _, name := range names {
		body, err := os.ReadFile(name)
		require.NoError(t, err)
		pages[strings.TrimSuffix(filepath.Base(name), ".json")] = body
	}
	return pages
}

// numbersIn adds the numbers of a document, those in texts too. A number with its power of ten counts
// as one.
func numbersIn(v any, add func(float64)) {
	switch v := v.(type) {
	case map[string]any:
		if n, ok := v["value"].(json.Number); ok {
			if power, ok := v["unit"].(json.Number); ok {
				if x, err := strconv.ParseFloat(n.String()+"e"+power.String(), 64); err == nil {
					add(x)
				}
			}
		}
		for name, inner := range v {
			if x, err := strconv.ParseFloat(name, 64); err == nil {
				add(x)
			}
			numbersIn(inner, add)
		}
	case []any:
		for _, inner := range v {
			numbersIn(inner, add)
		}
	case json.Number:
		if x, err := v.Float64(); err == nil {
			add(x)
		}
	case string:
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			add(x)
		}
	}
}

// person is a user of a service that is connected with a provider, without its sign-in.
type person struct {
	health *healthdata.Service
	team   healthlab.TeamID
	user   healthlab.UserID
}

func newPerson(t testing.TB, e *registry.Entry) *person {
	t.Helper()
	store := memory.New(nil)
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: e.Slug, Name: e.Slug, Category: "provider", Class: "manual"}})
	require.NoError(t, err)
	p := &person{team: healthlab.TeamID{UUID: uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")}}
	p.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox, Now: func() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) },
	})
	require.NoError(t, err)
	u, err := p.health.CreateUser(t.Context(), p.team, healthdata.NewUser{ClientUserID: "one"})
	require.NoError(t, err)
	p.user = u.ID
	_, err = p.health.Connections().Connect(t.Context(), p.team, p.user, healthdata.NewConnection{Provider: e.Slug})
	require.NoError(t, err)
	return p
}

// stored returns what is stored of one sample; nil if it is refused.
func (p *person) stored(t testing.TB, resource, provider string, source healthdata.Source, zone string, s healthdata.Sample) *healthdata.Sample {
	t.Helper()
	_, err := p.health.ReceiveSamples(t.Context(), p.team, p.user, resource, healthdata.Upload{
		Provider: provider, Stage: healthdata.StageDaily, Source: source, TimeZone: zone,
	}, []healthdata.Sample{s})
	require.NoError(t, err)
	list, err := p.health.AllSamples(t.Context(), p.team, p.user, healthdata.SampleQuery{Resource: resource, From: s.Timestamp.Time, To: s.Timestamp.Time})
	require.NoError(t, err)
	if len(list) > 0 {
		return &list[0]
	}
	return nil
}

// Where the stored number of a sample is another one than the provider sent, the sample has what was
// sent, and its unit.
func TestRead_convertedSamplesKeepTheSentNumberAndUnit(t *testing.T) {
	converted := map[string]bool{}
	for _, slug := range columns {
		t.Run(slug, func(t *testing.T) {
			e := registry.Find(slug)
			for kind, page := range pagesOf(t, slug) {
				data, err := e.Read(kind, page)
				require.NoError(t, err)
				var doc any
				d := json.NewDecoder(bytes.NewReader(page))
				d.UseNumber()
				require.NoError(t, d.Decode(&doc))
				var sent []float64
				numbersIn(doc, func(x float64) { sent = append(sent, x) })
				for resource, items := range data {
					for _, item := range items {
						for _, s := range item.Samples {
							if s.Value == nil || s.Value.IsText || derived[slug+" "+kind+" "+resource] != "" {
								continue
							}
							require.True(t, s.Value.Number == 0 || slices.Contains(sent, s.Value.Number), "%s: %s: the page does not have this number", kind, resource)
							got := newPerson(t, e).stored(t, resource, slug, item.Source, item.TimeZone, s)
							if got == nil || got.Value.Number == s.Value.Number {
								continue
							}
							converted[slug+" "+resource] = true
							require.NotNil(t, got.SourceUnit, "%s: %s", kind, resource)
							require.Equal(t, s.Unit, *got.SourceUnit)
							require.Equal(t, s.Value.Number, *got.SourceValue)
						}
					}
				}
			}
		})
	}
	require.Subset(t, slices.Collect(maps.Keys(converted)), []string{"google_health weight", "google_health distance", "suunto heartrate", "suunto calories_active", "suunto blood_oxygen"})
}
