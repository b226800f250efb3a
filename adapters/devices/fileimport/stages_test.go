package fileimport_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// stored returns the summaries of a resource that a service has.
func stored[T healthdata.Summary](t *testing.T, s *ingestion, resource string) []T {
	t.Helper()
	list, err := s.service.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: resource})
	require.NoError(t, err)
	var out []T
	for _, item := range list {
		out = append(out, item.(T))
	}
	return out
}

func (s *ingestion) take(t *testing.T, data []byte) (healthdata.Counts, fileimport.Report) {
	t.Helper()
	s.counts = healthdata.Counts{}
	rep, err := fileimport.Import(t.Context(), bytes.NewReader(data), s, nil)
	require.NoError(t, err)
	return s.counts, rep
}

// nightFile is a format whose nights have a cell for each stage.
type nightFile struct {
	write func(cells map[string]string) string
	cells map[string]string // a good night: the cell of each stage, and of the total
	bad   string            // a length that no night has
	// own is the total of a night of which a stage is not known; nil: the file has none.
	own *int64
	// counted means that the stages that are there make the total if one is missing.
	counted bool
}

func nightFiles() map[string]nightFile {
	json := func(cells map[string]string) string {
		var fields []string
		for name, cell := range cells {
			if cell != "" {
				fields = append(fields, fmt.Sprintf(`%q:%s`, name, cell))
			}
		}
		return strings.Join(fields, ",")
	}
	return map[string]nightFile{
		"Health Auto Export": {
			write: func(cells map[string]string) string {
				of := map[string]string{"core": cells["light"], "deep": cells["deep"], "rem": cells["rem"], "awake": cells["awake"], "totalSleep": "7.5"}
				return string(appBody(`{"name":"sleep_analysis","units":"hr","data":[{"sleepStart":"2026-02-28 23:00:00 +0100","sleepEnd":"2026-03-01 07:00:00 +0100",` + json(of) + `}]}`))
			},
			cells: map[string]string{"light": "4", "deep": "2", "rem": "1.5", "awake": "0.5"}, bad: "500", own: at(int64(27_000)),
		},
		"Garmin": {
			write: func(cells map[string]string) string {
				of := map[string]string{"lightSleepSeconds": cells["light"], "deepSleepSeconds": cells["deep"], "remSleepSeconds": cells["rem"], "awakeSleepSeconds": cells["awake"]}
				return `[{"calendarDate":"2026-03-01","sleepStartTimestampGMT":"2026-02-28T22:00:00.0","sleepEndTimestampGMT":"2026-03-01T06:00:00.0",` + json(of) + `}]`
			},
			cells: map[string]string{"light": "14400", "deep": "7200", "rem": "5400", "awake": "1800"}, bad: "30000", counted: true,
		},
		"WHOOP": {
			write: func(cells map[string]string) string {
				return "Cycle timezone,Sleep onset,Wake onset,Asleep duration (min),Light sleep duration (min),Deep (SWS) duration (min),REM duration (min),Awake duration (min),Nap\n" +
					"UTC+01:00,2026-02-28 23:00:00,2026-03-01 07:00:00,450," + cells["light"] + "," + cells["deep"] + "," + cells["rem"] + "," + cells["awake"] + ",false\n"
			},
			cells: map[string]string{"light": "240", "deep": "120", "rem": "90", "awake": "30"}, bad: "30000", own: at(int64(27_000)),
		},
	}
}

// A stage without a cell, or with one that cannot be read, is null, and the total is not the sum of the others.
func TestNights_stageThatIsNotKnownIsNull(t *testing.T) {
	seconds := map[string]int64{"light": 14_400, "deep": 7200, "rem": 5400, "awake": 1800}
	stagesOf := func(n *healthdata.Sleep) map[string]*int64 {
		return map[string]*int64{"light": n.Light, "deep": n.Deep, "rem": n.REM, "awake": n.Awake}
	}
	for format, f := range nightFiles() {
		for _, stage := range []string{"light", "deep", "rem", "awake"} {
			for what, cell := range map[string]string{"missing": "", "bad": f.bad, "zero": "0", "good": f.cells[stage]} {
				t.Run(format+"/"+stage+"/"+what, func(t *testing.T) {
					cells, want := map[string]string{}, map[string]*int64{}
					for name, v := range f.cells {
						cells[name], want[name] = v, at(seconds[name])
					}
					total := at(int64(27_000))
					switch cells[stage] = cell; {
					case what == "zero":
						want[stage] = at(int64(0))
						total = at(27_000 - seconds[stage])
					case what == "missing" && f.counted:
						want[stage] = nil
						total = at(27_000 - seconds[stage])
					case what != "good":
						want[stage] = nil
						total = f.own
					}
					if stage == "awake" {
						total = at(int64(27_000))
					}
					s := newIngestion(t)
					_, rep := s.take(t, []byte(f.write(cells)))
					require.Equal(t, what == "bad", len(rep.Skipped) > 0, "%v", rep.Skipped)
					night := stored[*healthdata.Sleep](t, s, "sleep")[0]
					require.Equal(t, want, stagesOf(night))
					require.Equal(t, total, night.Total)

					// A file in which the cell is good gives the stage, and one in which it is not takes nothing away.
					s.take(t, []byte(f.write(f.cells)))
					s.take(t, []byte(f.write(cells)))
					if night = stored[*healthdata.Sleep](t, s, "sleep")[0]; what == "bad" {
						require.EqualValues(t, 27_000, *night.Total)
						require.Equal(t, seconds[stage], *stagesOf(night)[stage])
					}
				})
			}
		}
	}
}
