package fileimport_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// exportFormats are the lists of account exports, by the name of their file.
var exportFormats = map[string]format{
	"workouts.csv": {
		good: func(i int) string {
			at := time.Date(2026, 3, 1+i, 17, 0, 0, 0, time.UTC)
			return fmt.Sprintf("%s,,UTC-04:00,%s,%s,48,Running,11.9,512,172,%d\n", at.Format(time.DateTime), at.Format(time.DateTime), at.Add(48*time.Minute).Format(time.DateTime), 120+i)
		},
		bad: []string{"x,,UTC-04:00,x,2026-04-09 18:18:40,48,Running,11.9,512,172,149\n", "2026-04-09 00:00:00,,UTC-04:00,2026-04-09 18:00:00,2026-04-09 17:00:00,48,Running,,,,\n", "2026-04-09 00:00:00,,,2026-04-09 17:00:00,2026-04-09 18:00:00,48,Running,,,,\n", "2026-04-09 00:00:00,,UTC-04:00,1970-04-09 17:00:00,1970-04-09 18:00:00,48,Running,,,,\n", "a\n", "\x0b\n", "\"a\n", "a,\"b\n", "\"a\"b,\n"},
		wrap: func(s string) string {
			return "Cycle start time,Cycle end time,Cycle timezone,Workout start time,Workout end time,Duration (min),Activity name,Activity Strain,Energy burned (cal),Max HR (bpm),Average HR (bpm)\n" + s
		},
	},
	"sleeps.csv": {
		good: func(i int) string {
			at := time.Date(2026, 3, 1+i, 13, 0, 0, 0, time.UTC)
			return fmt.Sprintf("UTC+05:30,%s,%s,8%d,14.1,40,30,5,5,0,95,true\n", at.Format(time.DateTime), at.Add(40*time.Minute).Format(time.DateTime), i%10)
		},
		bad: []string{"UTC,x,2026-04-09 18:18:40,80,14,40,30,5,5,0,95,true\n", "UTC,2026-04-09 18:00:00,2026-04-09 17:00:00,80,14,40,30,5,5,0,95,true\n", "Mars,2026-04-09 17:00:00,2026-04-09 18:00:00,80,14,40,30,5,5,0,95,true\n", "UTC,2026-04-09 17:00:00,2026-04-09 18:00:00,80,14,40,30,5,5,0,95,perhaps\n", "a\n", "\x0b\n", "\"a\n", "a,\"b\n"},
		wrap: func(s string) string {
			return "Cycle timezone,Sleep onset,Wake onset,Sleep performance %,Respiratory rate (rpm),Asleep duration (min),Light sleep duration (min),Deep (SWS) duration (min),REM duration (min),Awake duration (min),Sleep efficiency %,Nap\n" + s
		},
	},
	"physiological_cycles.csv": {
		good: func(i int) string {
			at := time.Date(2026, 3, 1+i, 22, 0, 0, 0, time.UTC)
			return fmt.Sprintf("%s,%s,UTC-04:00,5%d,48,6%d,2100,160,61,%s,%s\n", at.Format(time.DateTime), at.Add(24*time.Hour).Format(time.DateTime), i%10, i%10, at.Format(time.DateTime), at.Add(8*time.Hour).Format(time.DateTime))
		},
		bad: []string{"x,,UTC-04:00,50,48,60,2100,160,61,x,x\n", "2026-04-09 22:00:00,,UTC,50,48,60,,,,2026-04-09 22:00:00,2026-04-09 21:00:00\n", "2026-04-09 22:00:00,,UTC+99:00,50,48,60,,,,2026-04-09 22:00:00,2026-04-10 06:00:00\n", "a\n", "\x0b\n", "\"a\n", "a,\"b\n"},
		wrap: func(s string) string {
			return "Cycle start time,Cycle end time,Cycle timezone,Recovery score %,Resting heart rate (bpm),Heart rate variability (ms),Energy burned (cal),Max HR (bpm),Average HR (bpm),Sleep onset,Wake onset\n" + s
		},
	},
	"raw_tracker_distance.csv": {
		good: func(i int) string {
			return fmt.Sprintf("%s,\"[60]\",\"[%d.5]\"\n", time.Date(2026, 4, 1, i, 0, 0, 0, time.UTC).Format(time.RFC3339), 90+i)
		},
		bad:  []string{"x,[60],[60]\n", "2026-04-10T09:00:00+02:00,[60],[x]\n", "2026-04-10T09:00:00+02:00,[-60],[5]\n", "a\n", "\x0b\n", "\"a\n"},
		wrap: func(s string) string { return "start,duration,value\n" + s },
	},
	"weight.csv": {
		good: func(i int) string {
			return fmt.Sprintf("\"%s\",%d.5,16.0,3.2,60.0,44.0,\n", time.Date(2026, 4, 1, i, 12, 33, 0, time.UTC).Format(time.DateTime), 70+i)
		},
		bad: []string{"\"x\",80.0,,,,,\n", "\"2026-04-10 07:12:33\",x,,,,,\n", "\"1970-04-10 07:12:33\",80,,,,,\n", "\"2026-04-10 07:12:33\",9999,,,,,\n", "a\n", "\x0b\n", "\"a\n", "a,\"b\n", "\"a\"b,\n"},
		wrap: func(s string) string {
			return "Date,\"Weight (kg)\",\"Fat mass (kg)\",\"Bone mass (kg)\",\"Muscle mass (kg)\",\"Hydration (kg)\",Comments\n" + s
		},
	},
	"bp.csv": {
		good: func(i int) string {
			return fmt.Sprintf("\"%s\",%d,121,78,\n", time.Date(2026, 4, 1, i, 12, 33, 0, time.UTC).Format(time.DateTime), 60+i)
		},
		bad:  []string{"\"x\",61,121,78,\n", "\"2026-04-10 07:12:33\",x,x,x,\n", "\"1970-04-10 07:12:33\",61,121,78,\n", "\"2026-04-10 07:12:33\",,121,,\n", "\"2026-04-10 07:12:33\",,9999,78,\n", "a\n", "\x0b\n", "\"a\n", "a,\"b\n", "\"a\"b,\n"},
		wrap: func(s string) string { return "Date,\"Heart rate\",Systolic,Diastolic,Comments\n" + s },
	},
	"raw_tracker_steps.csv": {
		good: func(i int) string {
			return fmt.Sprintf("%s,\"[60,120]\",\"[%d,20]\"\n", time.Date(2026, 4, 1, i, 0, 0, 0, time.UTC).Format(time.RFC3339), 90+i)
		},
		bad:  []string{"x,[60],[60]\n", "2026-04-10T09:00:00+02:00,[60],[x]\n", "2026-04-10T09:00:00+02:00,[60\",[60]\n", "2026-04-10T09:00:00+02:00,[60],[-5]\n", "1970-04-10T09:00:00+02:00,[60],[5]\n", "a\n", "\x0b\n", "\"a\n", "a,\"b\n", "\"a\"b,\n"},
		wrap: func(s string) string { return "start,duration,value\n" + s },
	},
	"heart_rate-2026-04-09.json": {
		good: func(i int) string {
			return fmt.Sprintf(`{"dateTime":"04/09/26 07:%02d:33","value":{"bpm":%d,"confidence":2}},`, i, 60+i)
		},
		bad:  []string{`{},`, `7,`, `null,`, `{"dateTime":"x","value":{"bpm":60}},`, `{"dateTime":"04/09/26 08:12:33","value":7},`, `{"dateTime":"04/09/26 08:12:33","value":{"bpm":"x"}},`, `{"dateTime":7,"value":{"bpm":60}},`, `{"dateTime":"04/09/26 08:12:33","value":{"bpm":NaN}},`, `{"dateTime":"04/09/26 08:12:33","value":{"bpm":61,5}},`},
		wrap: func(s string) string { return "[" + strings.TrimSuffix(s, ",") + "]" },
	},
	"steps-2026-04-09.json": {
		good: func(i int) string { return fmt.Sprintf(`{"dateTime":"04/09/26 07:%02d:00","value":"%d"},`, i, 10+i) },
		bad:  []string{`{},`, `[],`, `{"dateTime":"x","value":"7"},`, `{"dateTime":"04/09/26 08:12:00","value":"x"},`, `{"dateTime":"04/09/26 08:12:00","value":{}},`, `{"dateTime":"04/09/26 08:12:00","value":"-7"},`, `{"dateTime":"04/09/26 08:12:00","value":Infinity},`, `{"dateTime":"04/09/70 08:12:00","value":"7"},`},
		wrap: func(s string) string { return "[" + strings.TrimSuffix(s, ",") + "]" },
	},
	"activities.csv": {
		good: func(i int) string {
			return fmt.Sprintf("%d,\"Apr %d, 2026, 6:30:20 AM\",\"Race, last leg\",Run,600,0.5,,600,590,5%02d.0\n", 9000+i, 1+i, i)
		},
		bad: []string{"8001,x,Race,Run,600,0.5,,600,590,500\n", "8003,\"Apr 31, 2026, 6:30:20 AM\",Race,Run,600,0.5,,600,590,500\n", ",,,,,,,,,\n", "a\n", "\x0b\n", "\"a\n", "a,\"b\n", "\"a\"b,\n"},
		wrap: func(s string) string {
			return "Activity ID,Activity Date,Activity Name,Activity Type,Elapsed Time,Distance,Filename,Elapsed Time,Moving Time,Distance\n" + s
		},
	},
}

// Of a random good list of an account's export, one bad row or item costs itself: alone, and as a file of an
// archive with another file that cannot be read.
func TestAccountExport_skipsOnlyTheInvalidItem(t *testing.T) {
	for name, f := range exportFormats {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			opts := &fileimport.Options{Zone: time.UTC, Now: func() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) }}
			for c := range prove.Sequential(100, 100, 10_000) {
				random := rand.New(rand.NewPCG(uint64(c), 6))
				items := make([]string, 3+random.IntN(18))
				for i := range items {
					items[i] = f.good(i)
				}
				var want, got recordingSink
				_, err := importNamedWith(t, path, f.wrap(strings.Join(items, "")), &want, opts)
				require.NoError(t, err)
				bad := f.bad[random.IntN(len(f.bad))]
				text := f.wrap(strings.Join(slices.Insert(items, random.IntN(len(items)+1), bad), ""))
				rep, err := importNamedWith(t, path, text, &got, opts)
				require.NoError(t, err, "case %d: %q", c, bad)
				require.True(t, reflect.DeepEqual(want.samples, got.samples), "case %d: %q", c, bad)
				require.True(t, reflect.DeepEqual(want.summaries, got.summaries), "case %d: %q", c, bad)
				require.NotEmpty(t, rep.Skipped, "case %d: it is told: %q", c, bad)
				if c%20 == 0 {
					s, _, err := importBytes(t, archive(t, "a/"+name, text, "a/broken.gpx", "<gpx><trk>", "a/other.txt", "no format"), opts)
					require.NoError(t, err)
					require.True(t, reflect.DeepEqual(want.samples, s.samples), "case %d: in an archive", c)
				}
			}
		})
	}
}
