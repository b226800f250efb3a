package healthconnect_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/adapters/sqlite/healthconnect"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// rowOf are columns of a good row by table, in SQL. Their time is a day after the other records.
var rowOf = map[string]map[string]string{
	"steps_record_table":                  spanning("count", "7"),
	"distance_record_table":               spanning("distance", "7.5"),
	"active_calories_burned_record_table": spanning("energy", "7000.0"),
	"hydration_record_table":              spanning("volume", "0.3"),
	"nutrition_record_table":              spanning("total_carbohydrate", "7", "caffeine", "0.1"),
	"weight_record_table":                 measured("weight", "70000.0"),
	"body_fat_record_table":               measured("percentage", "20.5"),
	"blood_glucose_record_table":          measured("level", "5.6", "specimen_source", "'1'"),
	"blood_pressure_record_table":         measured("systolic", "120", "diastolic", "80"),
	"body_temperature_record_table":       measured("temperature", "36.7", "measurement_location", "8"),
	"height_record_table":                 {"app_info_id": "1", "time": "2000", "zone_offset": "0", "height": "1.5"},
	"heart_rate_record_table":             spanning(),
	"heart_rate_record_series_table":      {"parent_key": "7", "beats_per_minute": "62", "epoch_millis": morning + "+2000"},
	"mindfulness_session_record_table":    spanning(),
	"sleep_session_record_table":          spanning("notes", "null", "title", "'Night'"),
	"sleep_stages_table":                  {"parent_key": "4", "stage_start_time": morning + "+86400000", "stage_end_time": morning + "+86700000", "stage_type": "5"},
	"exercise_session_record_table":       spanning("exercise_type", "33", "title", "'Run'", "has_route", "0"),
	"bone_mass_record_table":              measured("mass", "3000"),
	"application_info_table":              {"package_name": "'org.example.third'", "app_name": "'Third'", "app_icon": "null"},
	"device_info_table":                   {"manufacturer": "'Example'", "model": "'T1'", "device_type": "2"},
}

func spanning(more ...string) map[string]string {
	out := map[string]string{"start_time": morning + "+172800000", "start_zone_offset": "3600", "end_time": morning + "+172860000", "end_zone_offset": "3600", "local_date": "20513"}
	return recordOf(out, more)
}

func measured(more ...string) map[string]string {
	return recordOf(map[string]string{"time": morning + "+172800000", "zone_offset": "3600", "local_date": "20513"}, more)
}

func recordOf(out map[string]string, more []string) map[string]string {
	maps.Copy(out, map[string]string{"app_info_id": "1", "device_info_id": "1", "recording_method": "2", "uuid": "x'0f0e0d0c0b0a09080706050403020100'", "last_modified_time": "0"})
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// badColumns are values that stand where others are expected.
var badColumns = []string{
	"null", "''", "'x'", "'2026-02-30T25:61:00Z'", "x''", "x'00ff'", "-1", "0", "1.5", "1e300", "9e999", "-9e999", "9223372036854775807", "-9223372036854775808", "4.9e-324", "'NaN'", "'1e999'",
	"'[1, [2]]'", "'{}'", "4102444800000", "99999999999999999999", "char(0)", "cast(x'ff' as text)", "zeroblob(1000)", "'1 234,5'", "true",
}

// one is an item that a sink got.
type one struct {
	resource string
	source   healthdata.Source
	item     any
}

// handedOver returns what a sink got.
func handedOver(k *kept) (all []one) {
	for resource, list := range k.samples {
		for i := range list {
			all = append(all, one{resource, k.sources[resource][i], list[i]})
		}
	}
	for resource, list := range k.summaries {
		for _, s := range list {
			all = append(all, one{resource, healthdata.HeadOf(s).Source, s})
		}
	}
	return all
}

// An export with a row more of a random table, one column of which is spoiled, gives what it gives without
// the row. If the row gives nothing, the report counts it.
func TestRead_skipsOnlyTheCorruptedRowOfARandomTable(t *testing.T) {
	image := database(t, good)
	read := func(data []byte) (*strict, fileimport.Report) {
		s := &strict{}
		rep, err := healthconnect.Read(t.Context(), bytes.NewReader(data), int64(len(data)), s, nil)
		require.NoError(t, err)
		return s, rep
	}
	counted := func(rep *fileimport.Report) (n int) {
		for _, counts := range []map[string]int{rep.Skipped, rep.Refused} {
			for _, c := range counts {
				n += c
			}
		}
		return n
	}
	before, wantReport := read(image)
	want := handedOver(&before.kept)
	tables := slices.Sorted(maps.Keys(rowOf))
	name := filepath.Join(t.TempDir(), "export.db")
	for c := range prove.Sequential(100, 100, 10_000) {
		random := rand.New(rand.NewPCG(uint64(c), 44))
		table := tables[random.IntN(len(tables))]
		row := maps.Clone(rowOf[table])
		names := slices.Sorted(maps.Keys(row))
		row[names[random.IntN(len(names))]] = badColumns[random.IntN(len(badColumns))]
		values := make([]string, len(names))
		for i, column := range names {
			values[i] = row[column]
		}
		insert := fmt.Sprintf("insert into %s (%s) values (%s);", table, strings.Join(names, ", "), strings.Join(values, ", "))
		require.NoError(t, os.WriteFile(name, image, 0o600))
		db, err := sqlite3.Open("file:" + filepath.ToSlash(name))
		require.NoError(t, err)
		err = db.Exec(insert)
		require.NoError(t, db.Close())
		if err != nil {
			continue // a row that the store does not have
		}
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		after, rep := read(data)
		got := handedOver(&after.kept)
		for _, w := range want {
			require.True(t, slices.ContainsFunc(got, func(g one) bool {
				if s, ok := g.item.(healthdata.Summary); ok && table == "sleep_stages_table" && g.resource == w.resource {
					// A stage that can be is one of its night.
					return healthdata.HeadOf(s).ExternalID == healthdata.HeadOf(w.item.(healthdata.Summary)).ExternalID
				}
				return reflect.DeepEqual(g, w)
			}), "case %d: %s: %s", c, insert, w.resource)
		}
		silent := []string{"height_record_table", "heart_rate_record_table", "application_info_table", "device_info_table"}
		if len(got) == len(want) && !slices.Contains(silent, table) {
			require.Greater(t, counted(&rep), counted(&wantReport), "case %d: it is told: %s", c, insert)
		}
	}
}
