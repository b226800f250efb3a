package healthconnect_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sqlite/healthconnect"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// strict is a sink that stores all items of a call or none, as a service does.
type strict struct{ kept }

func (s *strict) Samples(ctx context.Context, resource string, source healthdata.Source, samples []healthdata.Sample) error {
	r := healthdata.ResourceBySlug(resource)
	bounds, _ := r.Bounds()
	var p healthlab.Problems
	for i, v := range samples {
		if v.Value == nil {
			continue // a blood pressure
		}
		if n, ok := r.Convert(v.Value.Number, v.Unit, ""); !ok || n < bounds.Low || n > bounds.High {
			p.Add("out_of_bounds", "must be "+bounds.String(), "data", i, "value")
		}
	}
	if err := p.Err(); err != nil {
		return err
	}
	return s.kept.Samples(ctx, resource, source, samples)
}

// A row with one bad column costs itself: everything else is handed over, and the report counts it.
func TestRead_skipsOnlyTheRowWithAnInvalidColumn(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	base := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).UnixMilli()
	for range 40 {
		good := map[string]int{}
		var rows []string
		add := func(count, text string) {
			if count != "" {
				good[count]++
			}
			rows = append(rows, text)
		}
		steps := func(start, zone, end, value any) string {
			return fmt.Sprintf("insert into steps_record_table (app_info_id, device_info_id, start_time, start_zone_offset, end_time, count) values (1, 1, %v, %v, %v, %v);", start, zone, end, value)
		}
		weight := func(at, zone, value any) string {
			return fmt.Sprintf("insert into weight_record_table (app_info_id, device_info_id, time, zone_offset, weight) values (2, 2, %v, %v, %v);", at, zone, value)
		}
		night := func(id, start, end any) string {
			return fmt.Sprintf("insert into sleep_session_record_table (row_id, app_info_id, start_time, start_zone_offset, end_time) values (%v, 1, %v, 3600, %v);", id, start, end)
		}
		for i := range 1 + r.IntN(5) {
			at := base + int64(i)*3_600_000
			add("steps", steps(at, 3600, at+60_000, []any{100, "'100'", 100.0}[r.IntN(3)]))
			add("weight", weight(at, "'3600'", []any{71_500, "'71500.5'"}[r.IntN(2)]))
			add("sleep", night(100+i, at, at+1_800_000))
			add("stage", fmt.Sprintf("insert into sleep_stages_table values (%d, %d, %d, 5);", 100+i, at, at+600_000))
		}
		last := base + 100*3_600_000
		add("", []string{
			steps(last, 3600, last+60_000, -5), steps(last, 3600, last+60_000, 1e12), steps(last, 3600, last+60_000, "'many'"), steps(last, 3600, last+60_000, "null"),
			steps("'soon'", 3600, last, 7), steps(last, 3600, last-1, 7), steps(last, 90_000, last+1000, 7), steps("9e18", 3600, "9e18", 7), steps("x'00ff'", 3600, last, 7),
			weight(last, 0, "9e999"), weight(last, 0, "x'01'"), weight("null", 0, 70_000), weight(last, "'east'", 70_000), weight(last, 0, 0),
			night(99, last, last-1), night(99, "null", last), night(99, "'late'", last),
			fmt.Sprintf("insert into sleep_stages_table values (100, %d, %d, 5);", base+1_200_000, base+700_000),
			fmt.Sprintf("insert into sleep_stages_table values (100, %d, %d, 77);", base+1_200_000, base+1_300_000),
			fmt.Sprintf("insert into sleep_stages_table values (100, %d, 'x', 5);", base+1_200_000),
		}[r.IntN(20)])
		r.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
		data := database(t, strings.Join(rows, "\n"))
		s := &strict{}
		rep, err := healthconnect.Read(t.Context(), bytes.NewReader(data), int64(len(data)), s, nil)
		require.NoError(t, err)
		lost := 0
		for _, counts := range []map[string]int{rep.Skipped, rep.Refused} {
			for _, n := range counts {
				lost += n
			}
		}
		require.Equal(t, 1, lost, "%v", rep)
		require.Len(t, s.samples["steps"], good["steps"])
		require.Len(t, s.samples["weight"], good["weight"])
		require.Len(t, s.summaries["sleep"], good["sleep"])
		stages := 0
		for _, c := range s.summaries["sleep_cycle"] {
			stages += len(c.(*healthdata.SleepCycle).StageType)
		}
		require.Equal(t, good["stage"], stages)
	}
}

// A database of which nothing is taken is an error.
func TestRead_databaseWithoutAnAcceptedItemIsAnError(t *testing.T) {
	data := database(t, "insert into steps_record_table (start_time, end_time, count) values (1772000000000, 1772000060000, -1);")
	_, err := healthconnect.Read(t.Context(), bytes.NewReader(data), int64(len(data)), &strict{}, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorContains(t, err, "must be 0 to 500000 count")
}
