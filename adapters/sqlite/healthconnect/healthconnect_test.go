package healthconnect_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/adapters/sqlite/healthconnect"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// schema is that of an export, with the columns that are read and some that are not.
const schema = `
create table application_info_table (row_id integer primary key, package_name text not null unique, app_name text, app_icon blob);
create table device_info_table (row_id integer primary key, manufacturer text, model text, device_type integer);
create table steps_record_table (` + record + interval + `, count integer);
create table distance_record_table (` + record + interval + `, distance real);
create table active_calories_burned_record_table (` + record + interval + `, energy real);
create table hydration_record_table (` + record + interval + `, volume real);
create table nutrition_record_table (` + record + interval + `, total_carbohydrate real, caffeine real);
create table weight_record_table (` + record + instant + `, weight real);
create table body_fat_record_table (` + record + instant + `, percentage real);
create table blood_glucose_record_table (` + record + instant + `, specimen_source text not null, level real);
create table blood_pressure_record_table (` + record + instant + `, systolic real, diastolic real);
create table body_temperature_record_table (` + record + instant + `, measurement_location integer, temperature real);
create table height_record_table (` + record + instant + `, height real);
create table heart_rate_record_table (` + record + interval + `);
create table heart_rate_record_series_table (parent_key integer not null, beats_per_minute integer, epoch_millis integer);
create table mindfulness_session_record_table (` + record + interval + `);
create table sleep_session_record_table (` + record + interval + `, notes text, title text);
create table sleep_stages_table (parent_key integer not null, stage_start_time integer not null, stage_end_time integer not null, stage_type integer not null);
create table exercise_session_record_table (` + record + interval + `, exercise_type integer, title text, has_route integer);
create table bone_mass_record_table (` + record + instant + `, mass real);
insert into application_info_table values (1, 'org.example.watch', 'Watch', null), (2, 'org.example.scale', 'Scale', null);
insert into device_info_table values (1, 'Example', 'W1', 1), (2, 'Example', 'S1', 3);
`

const (
	record   = `row_id integer primary key autoincrement, uuid blob unique, last_modified_time integer, app_info_id integer, device_info_id integer, recording_method integer`
	interval = `, start_time integer, start_zone_offset integer, end_time integer, end_zone_offset integer, local_date integer`
	instant  = `, time integer, zone_offset integer, local_date integer`
)

// database returns an export with rows.
func database(t testing.TB, rows string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "health_connect_export.db")
	db, err := sqlite3.Open("file:" + filepath.ToSlash(name))
	require.NoError(t, err)
	require.NoError(t, db.Exec(schema+rows))
	require.NoError(t, db.Close())
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return data
}

// kept is a sink that keeps everything.
type kept struct {
	summaries map[string][]healthdata.Summary
	samples   map[string][]healthdata.Sample
	sources   map[string][]healthdata.Source
	most      int
	fail      error
}

func (k *kept) Summaries(_ context.Context, resource string, source healthdata.Source, items []healthdata.Summary) error {
	if k.summaries == nil {
		k.summaries = map[string][]healthdata.Summary{}
	}
	for _, item := range items {
		if healthdata.HeadOf(item).Source != source {
			return errors.New("a summary of another source")
		}
	}
	k.summaries[resource] = append(k.summaries[resource], items...)
	return k.fail
}

func (k *kept) Samples(_ context.Context, resource string, source healthdata.Source, samples []healthdata.Sample) error {
	if k.samples == nil {
		k.samples, k.sources = map[string][]healthdata.Sample{}, map[string][]healthdata.Source{}
	}
	k.most = max(k.most, len(samples))
	k.samples[resource] = append(k.samples[resource], samples...)
	for range samples {
		k.sources[resource] = append(k.sources[resource], source)
	}
	return k.fail
}

func (k *kept) Stream(context.Context, *healthdata.Workout, healthdata.WorkoutStream) error {
	return errors.New("an export has no streams")
}

func read(t testing.TB, data []byte, opts *fileimport.Options) (*kept, fileimport.Report) {
	t.Helper()
	k := &kept{}
	rep, err := healthconnect.Read(t.Context(), bytes.NewReader(data), int64(len(data)), k, opts)
	require.NoError(t, err)
	return k, rep
}

// morning is 2026-03-01 08:00 UTC in milliseconds.
const morning = "1772352000000"

var at = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// good are records of every kind.
const good = `
insert into steps_record_table (uuid, app_info_id, device_info_id, recording_method, start_time, start_zone_offset, end_time, count)
 values (x'00112233445566778899aabbccddeeff', 1, 1, 2, ` + morning + `, 3600, ` + morning + `+60000, 100), (null, 2, null, 3, ` + morning + `+60000, null, ` + morning + `+120000, 50);
insert into distance_record_table (app_info_id, device_info_id, start_time, start_zone_offset, end_time, distance) values (1, 1, ` + morning + `, 3600, ` + morning + `+60000, 70.5);
insert into active_calories_burned_record_table (app_info_id, device_info_id, start_time, end_time, energy) values (1, 1, ` + morning + `, ` + morning + `+60000, 412000.0);
insert into hydration_record_table (app_info_id, start_time, end_time, volume) values (1, ` + morning + `, ` + morning + `, 0.25);
insert into nutrition_record_table (app_info_id, start_time, end_time, total_carbohydrate, caffeine) values (1, ` + morning + `, ` + morning + `, 40, 4.9e-324), (1, ` + morning + `, ` + morning + `, null, 0.08);
insert into weight_record_table (app_info_id, device_info_id, time, zone_offset, weight) values (2, 2, ` + morning + `, 7200, 71500.0);
insert into body_fat_record_table (app_info_id, device_info_id, time, zone_offset, percentage) values (2, 2, ` + morning + `, 7200, 21.5);
insert into blood_glucose_record_table (app_info_id, time, specimen_source, level) values (1, ` + morning + `, 1, 5.5), (1, ` + morning + `, 2, 6.5);
insert into blood_pressure_record_table (app_info_id, time, systolic, diastolic) values (1, ` + morning + `, 121, 79);
insert into body_temperature_record_table (app_info_id, time, measurement_location, temperature) values (1, ` + morning + `, 8, 36.6);
insert into height_record_table (app_info_id, time, height) values (1, ` + morning + `, 1.755), (1, 1000, 1.2);
insert into heart_rate_record_table (row_id, app_info_id, device_info_id, start_time, start_zone_offset, end_time) values (7, 1, 1, ` + morning + `, 3600, ` + morning + `+5000);
insert into heart_rate_record_series_table values (7, 61, ` + morning + `), (7, 63, ` + morning + `+5000);
insert into mindfulness_session_record_table (app_info_id, start_time, end_time) values (1, ` + morning + `, ` + morning + `+600000);
insert into sleep_session_record_table (row_id, uuid, app_info_id, device_info_id, start_time, start_zone_offset, end_time)
 values (3, x'ffeeddccbbaa99887766554433221100', 1, 1, ` + morning + `, 3600, ` + morning + `+7200000), (4, null, 1, 1, ` + morning + `+86400000, 3600, ` + morning + `+90000000);
insert into sleep_stages_table values (3, ` + morning + `+3600000, ` + morning + `+5400000, 5), (3, ` + morning + `, ` + morning + `+3600000, 4), (3, ` + morning + `+5400000, ` + morning + `+6000000, 1), (3, ` + morning + `+6000000, ` + morning + `+7200000, 6);
insert into exercise_session_record_table (uuid, app_info_id, device_info_id, start_time, start_zone_offset, end_time, exercise_type, title)
 values (x'0123456789abcdef0123456789abcdef', 1, 1, ` + morning + `, 3600, ` + morning + `+1800000, 33, 'Run'), (null, 1, 1, ` + morning + `+7200000, 3600, ` + morning + `+9000000, 999, null);
insert into bone_mass_record_table (app_info_id, time, mass) values (1, ` + morning + `, 3000);
`

func TestRead_givesSamplesSummariesAndSkippedTables(t *testing.T) {
	k, rep := read(t, database(t, good), nil)
	require.Equal(t, healthconnect.Format, rep.Format)
	require.Equal(t, map[string]int{"bone_mass_record_table": 1}, rep.Skipped)
	values := map[string][]float64{}
	for resource, list := range k.samples {
		for _, s := range list {
			if s.Value != nil {
				n, ok := healthdata.ResourceBySlug(resource).Convert(s.Value.Number, s.Unit, "")
				require.True(t, ok, resource)
				values[resource] = append(values[resource], n)
			}
		}
	}
	require.Equal(t, map[string][]float64{"steps": {50, 100}, "distance": {70.5}, "calories_active": {412}, "water": {250}, "carbohydrates": {40}, "caffeine": {0.08}, "weight": {71.5},
		"fat": {21.5}, "glucose": {5.5, 6.5}, "body_temperature": {36.6}, "heartrate": {61, 63}, "mindfulness_minutes": {10}}, sorted(values))
	steps := k.samples["steps"][1]
	require.Equal(t, at, steps.Timestamp.Time)
	require.Equal(t, at.Add(time.Minute), steps.End.Time)
	require.Equal(t, 3600, *steps.TimezoneOffset)
	require.Nil(t, k.samples["steps"][0].TimezoneOffset)
	require.Equal(t, healthdata.SourceApp, k.sources["steps"][0].Type, "typed by hand")
	require.Equal(t, healthdata.SourceWatch, k.sources["steps"][1].Type)
	require.Equal(t, "org.example.watch", *k.sources["steps"][1].AppID)
	require.Equal(t, healthdata.SlugHealthConnect, k.sources["steps"][1].Provider)
	require.Equal(t, healthdata.SourceScale, k.sources["weight"][0].Type)
	require.ElementsMatch(t, []healthdata.SourceType{healthdata.SourceAutomatic, healthdata.SourceFingerprick}, []healthdata.SourceType{k.sources["glucose"][0].Type, k.sources["glucose"][1].Type})
	require.Equal(t, "ear", *k.samples["body_temperature"][0].SensorLocation)
	for resource, unit := range map[string]string{"weight": "g", "calories_active": "cal", "water": "L", "distance": "m"} {
		require.Equal(t, unit, k.samples[resource][0].Unit, "as the store has it")
	}
	require.InDelta(t, 121, *k.samples["blood_pressure"][0].Systolic, 0)
	require.InDelta(t, 79, *k.samples["blood_pressure"][0].Diastolic, 0)
	require.Equal(t, at.Add(5*time.Second), k.samples["heartrate"][1].Timestamp.Time)

	require.Len(t, k.summaries["sleep"], 2)
	night := k.summaries["sleep"][0].(*healthdata.Sleep)
	require.Equal(t, "ffeeddcc-bbaa-9988-7766-554433221100", night.ExternalID)
	require.Equal(t, []int64{3600, 1800, 1200, 600, 6600}, []int64{*night.Light, *night.Deep, *night.REM, *night.Awake, *night.Total})
	require.Len(t, k.summaries["sleep_cycle"], 1, "a night without stages has none")
	cycle := k.summaries["sleep_cycle"][0].(*healthdata.SleepCycle)
	require.Equal(t, []int64{0, 3600, 5400, 6000}, cycle.StageStartOffsetSecond)
	require.Equal(t, []healthdata.SleepStage{healthdata.SleepStageLight, healthdata.SleepStageDeep, healthdata.SleepStageAwake, healthdata.SleepStageREM}, cycle.StageType)
	require.Equal(t, night.ExternalID, cycle.ExternalID)
	run := k.summaries["workouts"][0].(*healthdata.Workout)
	require.Equal(t, "running", run.Sport.Slug)
	require.Equal(t, "Run", *run.Title)
	require.Equal(t, "01234567-89ab-cdef-0123-456789abcdef", run.ExternalID)
	require.Equal(t, "other", k.summaries["workouts"][1].(*healthdata.Workout).Sport.Slug)
	require.Equal(t, int64(176), *k.summaries["profile"][0].(*healthdata.Profile).Height, "the newest")

	again, _ := read(t, database(t, good), nil)
	require.Equal(t, k, again, "the same file hands over the same")
	small, _ := read(t, database(t, good), &fileimport.Options{BatchSize: 1, Provider: "manual"})
	require.Equal(t, 1, small.most)
	require.Equal(t, "manual", small.sources["steps"][0].Provider)
}

func sorted(m map[string][]float64) map[string][]float64 {
	for _, list := range m {
		for i := range list {
			for k := i; k > 0 && list[k] < list[k-1]; k-- {
				list[k], list[k-1] = list[k-1], list[k]
			}
		}
	}
	return m
}

// Records that cannot be read are counted, and nothing else is lost.
func TestRead_unreadableRecordsAreCounted(t *testing.T) {
	const bad = good + `
insert into steps_record_table (app_info_id, start_time, end_time, count) values (1, null, ` + morning + `, 1), (1, ` + morning + `, ` + morning + `-1, 2), (1, 'soon', ` + morning + `, 3),
 (1, ` + morning + `, 99999999999999999, 4), (1, ` + morning + `, ` + morning + `, 'many'), (1, ` + morning + `, ` + morning + `, null), (1, ` + morning + `, ` + morning + `, 9e999);
insert into steps_record_table (app_info_id, start_time, start_zone_offset, end_time, count) values (1, ` + morning + `, 7200000, ` + morning + `, 5);
insert into weight_record_table (app_info_id, time, weight) values (1, ` + morning + `, x'00');
insert into blood_pressure_record_table (app_info_id, time, systolic, diastolic) values (1, ` + morning + `, 121, null);
insert into height_record_table (app_info_id, time, height) values (1, ` + morning + `+1, 17.5);
insert into heart_rate_record_series_table values (7, null, ` + morning + `), (7, 60, -9e18), (99, 60, ` + morning + `);
insert into sleep_session_record_table (row_id, app_info_id, start_time, end_time) values (9, 1, ` + morning + `, ` + morning + `-1);
insert into sleep_stages_table values (9, ` + morning + `, ` + morning + `, 4), (3, ` + morning + `+7200000, ` + morning + `+7300000, 4), (3, ` + morning + `+1000, ` + morning + `+11000, 5), (3, ` + morning + `+7200000, ` + morning + `+7200000, 77);
insert into exercise_session_record_table (app_info_id, start_time, end_time, exercise_type) values (1, 'x', ` + morning + `, 33);
`
	want, _ := read(t, database(t, good), nil)
	got, rep := read(t, database(t, bad), nil)
	require.Equal(t, want, got)
	require.Equal(t, map[string]int{"bone_mass_record_table": 1, "steps_record_table (bad time)": 5, "steps_record_table (no value)": 3, "weight_record_table (no value)": 1,
		"blood_pressure_record_table (no value)": 1, "height_record_table (no value or bad time)": 1, "heart_rate_record_series_table (no value)": 1, "heart_rate_record_series_table (no record)": 1,
		"heart_rate_record_series_table (bad time)": 1, "sleep_session_record_table (bad time)": 1, "sleep_stages_table (bad time or stage)": 3,
		"exercise_session_record_table (bad time)": 1}, rep.Skipped)
}

// Sports have the slugs that recordings and other providers give them.
func TestRead_exerciseTypesBecomeSportSlugs(t *testing.T) {
	for number, slug := range map[int]string{
		4: "cycling", 5: "indoor_cycling", 34: "treadmill_running", 44: "stair_climbing", 45: "strength_training", 55: "strength_training", 59: "stair_climbing",
		61: "indoor_rowing",
	} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			k, _ := read(t, database(t, fmt.Sprintf(`insert into exercise_session_record_table (app_info_id, start_time, end_time, exercise_type) values (1, %s, %[1]s+60000, %d);`,
				morning, number)), nil)
			require.Equal(t, slug, k.summaries["workouts"][0].(*healthdata.Workout).Sport.Slug)
		})
	}
}

// Exports of other versions lack tables and columns.
func TestRead_acceptsExportsWithoutSomeTablesAndColumns(t *testing.T) {
	k, rep := read(t, database(t, good+`
drop table sleep_stages_table; drop table heart_rate_record_series_table; drop table device_info_table; drop table bone_mass_record_table; drop table height_record_table;
alter table steps_record_table drop column recording_method; alter table steps_record_table drop column start_zone_offset; alter table exercise_session_record_table drop column title;`), nil)
	require.Empty(t, rep.Skipped)
	require.Len(t, k.samples["steps"], 2)
	require.Equal(t, healthdata.SourceUnknown, k.sources["steps"][0].Type)
	require.Len(t, k.summaries["sleep"], 2)
	require.Len(t, k.summaries["workouts"], 2)
	require.Empty(t, k.samples["heartrate"])
}

// The archive that the phone writes, and the database alone, are read by an import that is given
// the reader; one without it says that the file is of no format that is read.
func TestImport_optionsDatabaseReadsArchiveAndFile(t *testing.T) {
	dir := t.TempDir()
	data := database(t, good)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("health_connect_export.db")
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	want, _ := read(t, data, nil)
	for name, content := range map[string][]byte{"Health Connect.zip": b.Bytes(), "export.db": data} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		k := &kept{}
		rep, err := fileimport.ImportFile(t.Context(), path, k, &fileimport.Options{Database: healthconnect.Read, TempDir: dir})
		require.NoError(t, err, name)
		require.Equal(t, want, k, name)
		require.Equal(t, 2, rep.Samples["steps"], name)
		_, err = fileimport.ImportFile(t.Context(), path, &kept{}, nil)
		require.ErrorIs(t, err, fileimport.ErrFormat, name)
	}
	left, err := filepath.Glob(filepath.Join(dir, "archive-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	k := &kept{}
	_, err = fileimport.Import(t.Context(), bytes.NewBuffer(data), k, &fileimport.Options{Database: healthconnect.Read})
	require.NoError(t, err, "a reader that cannot seek")
	require.Equal(t, want, k)
}

func TestRead_refusesOtherAndOversizedDatabases(t *testing.T) {
	good := database(t, good)
	other := filepath.Join(t.TempDir(), "other.db")
	db, err := sqlite3.Open("file:" + filepath.ToSlash(other))
	require.NoError(t, err)
	require.NoError(t, db.Exec(`create table x (y)`))
	require.NoError(t, db.Close())
	data, err := os.ReadFile(other)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"another kind": {data, fileimport.ErrFormat}, "empty": {nil, fileimport.ErrFormat}, "text": {[]byte("hello, this is no database of any kind that there may be"), fileimport.ErrFormat},
		"cut off": {good[:len(good)/2], healthlab.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kept{}
			_, err := healthconnect.Read(t.Context(), bytes.NewReader(c.data), int64(len(c.data)), k, nil)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, &kept{}, k, "nothing is handed over")
		})
	}
	broken := errors.New("the sink is full")
	_, err = healthconnect.Read(t.Context(), bytes.NewReader(good), int64(len(good)), &kept{fail: broken}, nil)
	require.ErrorIs(t, err, broken)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = healthconnect.Read(ctx, bytes.NewReader(good), int64(len(good)), &kept{}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// A view in place of a table is not run: it may count without end.
func TestRead_doesNotRunViews(t *testing.T) {
	k, _ := read(t, database(t, `drop table steps_record_table; create view steps_record_table as with recursive n(i) as (select 1 union all select i+1 from n)
 select i as row_id, 1 as app_info_id, 1 as device_info_id, 2 as recording_method, i as start_time, i as end_time, 1 as count, null as uuid from n;`), nil)
	require.Empty(t, k.samples["steps"])
}

// Damaged databases end in an error or in what is left, never in a crash or without end.
func TestRead_damagedDatabaseEndsInAnErrorOrData(t *testing.T) {
	good := database(t, good)
	r := rand.New(rand.NewPCG(26, 4))
	for range 60 {
		data := bytes.Clone(good)
		for range 1 + r.IntN(40) {
			data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		}
		data = data[:len(data)-r.IntN(2)*r.IntN(len(data))]
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		_, err := healthconnect.Read(ctx, bytes.NewReader(data), int64(len(data)), &kept{}, nil)
		stop()
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
		}
	}
}
