package tables_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

func TestTables_haveTheColumnsOfTheirResource(t *testing.T) {
	counts := map[string]int{}
	for _, table := range tables.All() {
		counts[table.Name] = len(table.Columns)
		require.Equal(t, table.Name, healthdata.ResourceBySlug(table.Resource).Table)
		seen := map[string]bool{}
		for i := range table.Columns {
			c := &table.Columns[i]
			require.False(t, seen[c.Name], "%s.%s stands once", table.Name, c.Name)
			seen[c.Name] = true
			require.Same(t, c, table.Column(c.Name))
			require.Equal(t, c.Type == tables.TypeList, len(c.Fields) > 0)
		}
		require.Nil(t, table.Column("no_such_column"))
	}
	require.Equal(t, map[string]int{
		"sleep": 31, "activity": 24, "workout": 35, "body": 15, "meal": 48, "menstrual_cycle": 18, "profile": 11,
	}, counts)
	require.Nil(t, tables.ByName("sleep_cycle"))
}

// Every column reads an empty summary, and a summary of another table, without a fault.
func TestColumns_readEmptySummariesAsNull(t *testing.T) {
	for _, table := range tables.All() {
		row := tables.Row{Record: &healthdata.Record{}, Summary: healthdata.ResourceBySlug(table.Resource).New()}
		other := tables.Row{Record: &healthdata.Record{}, Summary: new(healthdata.Electrocardiogram)}
		for i := range table.Columns {
			c := &table.Columns[i]
			c.Value(&other)
			if c.Type == tables.TypeFloat64 {
				require.False(t, c.Value(&row).Valid, "%s.%s", table.Name, c.Name)
			}
		}
	}
}

func TestSampleColumns_dependOnTheResourcesShape(t *testing.T) {
	require.Len(t, tables.SampleTimeseries(), 51)
	own := map[string][]string{
		"heartrate":         {"value"},
		"steps":             {"value", "duration"},
		"water":             {"value", "duration"},
		"blood_pressure":    {"systolic", "diastolic"},
		"note":              {"content", "tags"},
		"body_temperature":  {"value", "duration", "sensor_location"},
		"insulin_injection": {"value", "duration", "delivery_mode", "delivery_form", "bolus_purpose"},
	}
	for slug, want := range own {
		var got []string
		for _, c := range tables.SampleColumns(healthdata.ResourceBySlug(slug))[7:] {
			got = append(got, c.Name)
		}
		require.Equal(t, want, got, slug)
	}
}

func TestSleepTable_rowReadsEveryKindOfColumn(t *testing.T) {
	table := tables.ByName("sleep")
	stop := time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	row := tables.Row{
		Record: &healthdata.Record{ID: uuid.UUID{1}, Provider: "acme_ring", SourceType: healthdata.SourceRing, Index: stop, Offset: 3600},
		Summary: &healthdata.Sleep{
			BedtimeStart: healthlab.At(stop.Add(-8 * time.Hour)), BedtimeStop: healthlab.At(stop), Duration: 8 * 3600,
		},
		Cycle: &healthdata.SleepCycle{
			StageStartOffsetSecond: []int64{0, 60}, StageEndOffsetSecond: []int64{60, 90},
			StageType: []healthdata.SleepStage{healthdata.SleepStageLight, healthdata.SleepStageMissing},
		},
	}
	require.Equal(t, stop.Add(time.Hour).UnixMicro(), table.Index(&row))
	value := func(name string) tables.Cell { return table.Column(name).Value(&row) }
	require.Equal(t, stop.Add(-7*time.Hour).UnixMicro(), value("session_start").Int)
	require.Equal(t, int64(30), value("stage_unknown_second").Int)
	require.Equal(t, "UTC+01:00", value("time_zone").Text)
	require.Equal(t, "acme_ring", value("source_provider").Text)
	require.False(t, value("score").Valid)
	row.Record.Offset = -12600
	require.Equal(t, "UTC-03:30", value("time_zone").Text)
}

func TestMealTable_nutrientsAreInTheUnitOfTheirColumn(t *testing.T) {
	row := tables.Row{Record: &healthdata.Record{}, Summary: &healthdata.Meal{Micros: &healthdata.Micros{
		Vitamins: map[string]float64{"vitamin_a": 900, "vitamin_c": 80, "vitamin_d": 15},
	}}}
	table := tables.ByName("meal")
	require.InDelta(t, 0.9, table.Column("vitamin_a_milligram").Value(&row).Float, 1e-15)
	require.InDelta(t, 80.0, table.Column("vitamin_c_milligram").Value(&row).Float, 0)
	require.InDelta(t, 15.0, table.Column("vitamin_d_microgram").Value(&row).Float, 0)
	require.False(t, table.Column("zinc_milligram").Value(&row).Valid)
}
