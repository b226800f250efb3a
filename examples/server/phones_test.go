package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

var update = flag.Bool("update", false, "write the tables of the documents")

const phones = "../../docs/phones"

// phoneKinds are the rows of the table of phones, by column.
func phoneKinds(t *testing.T) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(filepath.Join(phones, "kinds.csv"))
	require.NoError(t, err)
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// The page has the table, and units of the table are ones that the catalogue converts.
func TestPhones_tableOfTheDocsIsCurrent(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("| resource | unit | Apple HealthKit | unit | Health Connect | unit | Samsung Health | unit | note |\n|---|---|---|---|---|---|---|---|---|\n")
	code := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + text + "`"
	}
	for _, row := range phoneKinds(t) {
		r := healthdata.ResourceBySlug(row["resource"])
		require.NotNil(t, r, row["resource"])
		fmt.Fprintf(&b, "| `%s` | %s ", r.Slug, r.Unit)
		for _, store := range []string{"healthkit", "health_connect", "samsung_health"} {
			unit := row[store+"_unit"]
			fmt.Fprintf(&b, "| %s | %s ", code(row[store]), unit)
			if r.Class != healthdata.ClassTimeseries || row[store] == "" {
				continue
			}
			if r.Value == healthdata.ValuePressure {
				require.Equal(t, r.Unit, unit)
				continue
			}
			_, ok := r.Convert(1, unit, "")
			require.True(t, ok, "%s of %s: unit %s", store, r.Slug, unit)
		}
		note := row["note"]
		if r.Class == healthdata.ClassTimeseries && r.Shape == healthdata.Interval {
			note = strings.TrimSuffix("interval; "+note, "; ")
		}
		fmt.Fprintf(&b, "| %s |\n", note)
	}
	page, err := os.ReadFile("../../docs/phones.md")
	require.NoError(t, err)
	const begin, end = "<!-- kinds -->\n", "<!-- /kinds -->"
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := before + begin + b.String() + end + after
	if *update {
		require.NoError(t, os.WriteFile("../../docs/phones.md", []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(page), "run go test ./examples/server -run TestPhones_tableOfTheDocsIsCurrent -update")
}

// imported is a sink that notes the resources that came.
type imported map[string]bool

func (i imported) Summaries(_ context.Context, resource string, _ healthdata.Source, _ []healthdata.Summary) error {
	i[resource] = true
	return nil
}

func (i imported) Samples(_ context.Context, resource string, _ healthdata.Source, _ []healthdata.Sample) error {
	i[resource] = true
	return nil
}

func (i imported) Stream(context.Context, *healthdata.Workout, healthdata.WorkoutStream) error {
	return nil
}

// An export of the store becomes the same resources as an upload.
func TestPhones_exportAndUploadGiveTheSameResources(t *testing.T) {
	t.Parallel()
	for _, row := range phoneKinds(t) {
		name := row["healthkit"]
		if !strings.HasPrefix(name, "HKQuantityType") && !strings.HasPrefix(name, "HKCategoryType") || row["resource"] == "menstrual_cycle" {
			continue // not a record of an export, or left out by the import
		}
		t.Run(row["resource"]+" "+name, func(t *testing.T) {
			doc := `<?xml version="1.0"?><HealthData>`
			for _, id := range strings.Split(name, "+") {
				if id == "Diastolic" {
					id = "HKQuantityTypeIdentifierBloodPressureDiastolic"
				}
				value, unit := "0.5", row["healthkit_unit"]
				switch {
				case strings.HasSuffix(id, "StandHour"):
					value = "HKCategoryValueAppleStandHourStood"
				case strings.HasSuffix(id, "SleepAnalysis"):
					value = "HKCategoryValueSleepAnalysisAsleepCore"
				case strings.HasSuffix(id, "Diastolic"):
					value = "60"
				case strings.HasSuffix(id, "Systolic"), strings.HasSuffix(id, "Height"):
					value = "100"
				case strings.HasSuffix(id, "VO2Max"):
					unit = "mL/min·kg" // an export writes it so
				case unit == "fraction":
					unit = "%" // an export writes fractions so
				}
				doc += fmt.Sprintf(`<Record type="%s" sourceName="W" unit="%s" startDate="2026-03-02 08:00:00 +0100" endDate="2026-03-02 09:00:00 +0100" value="%s"/>`, id, unit, value)
			}
			if row["resource"] == "blood_pressure" { // a correlation has both
				doc = strings.Replace(doc, "<Record", `<Correlation type="HKCorrelationTypeIdentifierBloodPressure" sourceName="W" startDate="2026-03-02 08:00:00 +0100" endDate="2026-03-02 08:00:00 +0100"><Record`, 1) + "</Correlation>"
			}
			got := imported{}
			_, err := fileimport.Import(t.Context(), strings.NewReader(doc+`</HealthData>`), got, nil)
			require.NoError(t, err)
			require.True(t, got[row["resource"]], "%v", slices.Sorted(maps.Keys(got)))
		})
	}
}

// phoneRequest is a request of an app.
type phoneRequest struct {
	Name    string          `json:"name"`
	Request string          `json:"request"`
	Body    json.RawMessage `json:"body"`
	Answer  map[string]any  `json:"answer"`
}

func phoneRequests(t *testing.T) (out []phoneRequest) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(phones, "requests.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(doc, &out))
	return out
}

// The documented requests of an app work, with the app's own token. Steps of the phone and the
// watch are not added.
func TestPhones_documentedRequestsWork(t *testing.T) {
	t.Parallel()
	p := start(t)
	var user struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &user)
	var issued struct {
		Token string `json:"sign_in_token"`
	}
	ask(p, "POST", "/v2/user/"+user.ID+"/sign_in_token", "", 200, &issued)
	fill := strings.NewReplacer("{user_id}", user.ID, "{sign_in_token}", issued.Token)
	header := []string{"x-service-api-key", ""}
	for _, r := range phoneRequests(t) {
		method, path, _ := strings.Cut(fill.Replace(r.Request), " ")
		var answer map[string]any
		func() {
			defer func() {
				if t.Failed() {
					t.Log(r.Name)
				}
			}()
			ask(p, method, path, fill.Replace(string(r.Body)), 200, &answer, header...)
		}()
		for name, want := range r.Answer {
			require.Equal(t, want, answer[name], "%s: %s", r.Name, name)
		}
		if token, ok := answer["access_token"].(string); ok {
			header = []string{"x-service-api-key", "", "Authorization", "Bearer " + token}
		}
	}
	var answer struct {
		Results []struct {
			Table struct {
				Sum []float64 `json:"sum"`
			} `json:"table"`
		} `json:"results"`
	}
	ask(p, "POST", "/aggregate/v1/user/"+user.ID+"/query", `{
		"timeframe": {"type": "relative", "anchor": "2026-03-02", "past": {"unit": "day", "value": 1}},
		"queries": [{"select": [{"func": "sum", "arg": {"timeseries": "steps", "field": "value"}}]}]
	}`, 200, &answer)
	require.Equal(t, []float64{700 + 900/2 + 400/2}, answer.Results[0].Table.Sum)
}

// The example clients name every path and member of the documented requests.
func TestPhones_exampleClientsUseTheDocumentedNames(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"HealthLabUpload.swift", "HealthLabUpload.kt"} {
		t.Run(file, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(phones, file))
			require.NoError(t, err)
			text := strings.NewReplacer(`\(user)`, "{user_id}", "${user()}", "{user_id}", `\(kind.path)`, "steps", "${was.path}", "steps").Replace(string(source))
			var names func(v any)
			names = func(v any) {
				switch v := v.(type) {
				case map[string]any:
					for name, inner := range v {
						require.True(t, regexp.MustCompile(`\b`+name+`\b`).MatchString(text), name)
						names(inner)
					}
				case []any:
					for _, inner := range v {
						names(inner)
					}
				}
			}
			for _, r := range phoneRequests(t) {
				_, path, _ := strings.Cut(r.Request, " ")
				path = strings.NewReplacer("heartrate", "steps", "apple_health_kit", "").Replace(path)
				if strings.HasSuffix(path, "/remove") { // one line for all resources
					path = path[:strings.Index(path, "{user_id}")]
					path = strings.ReplaceAll(path, "workouts/", "")
				}
				require.True(t, strings.Contains(text, path), "%s: %s", r.Name, path)
				var body any
				require.NoError(t, json.Unmarshal(r.Body, &body))
				if m, ok := body.(map[string]any); ok {
					if source, ok := m["source"].(map[string]any); ok {
						if d, ok := source["device"].(map[string]any); ok {
							delete(d, "id") // Health Connect has no id of a device
						}
					}
				}
				names(body)
			}
		})
	}
}

// Progress says the percent of the files that is read, and how long the rest takes.
func TestImport_progressShowsPercentAndTimeLeft(t *testing.T) {
	for _, c := range []struct {
		done float64
		took time.Duration
		want string
	}{
		{0, 0, "0 %"},
		{0.25, 30 * time.Second, "25 %, 2 min left"},
		{0.5, 10 * time.Second, "50 %, 10 s left"},
		{0.999, 10 * time.Second, "99 %, 1 s left"},
		{0.01, time.Hour, "1 %, 5940 min left"},
		{1, time.Hour, "100 %"},
	} {
		require.Equal(t, c.want, progressOf(c.done, c.took))
	}
}
