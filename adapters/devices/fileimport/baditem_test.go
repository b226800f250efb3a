package fileimport_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muktihari/fit/profile/typedef"
	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/profile/untyped/mesgnum"
	"github.com/muktihari/fit/proto"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// format makes random files: n good items, and one bad item before the item at.
type format struct {
	good func(i int) string
	bad  []string
	wrap func(items string) string
}

func stampOf(i int) string { return race.Add(seconds(i)).Format("2006-01-02T15:04:05Z") }

var textFormats = map[string]format{
	"gpx": {
		good: func(i int) string {
			return fmt.Sprintf("<trkpt lat='47.%04d' lon='8.5'><ele>%d</ele><time>%s</time><hr>%d</hr></trkpt>\n", i, 400+i%7, stampOf(i), 100+i)
		},
		bad: []string{
			"<trkpt lat='47' lon='8'/>", "<trkpt lat='47' lon='8'><ele>1</ele><hr>99</hr></trkpt>", "<trkpt lat='47' lon='8'><time>x</time><hr>99</hr></trkpt>",
			"<trkpt lat='47' lon='8'><time>0000-03-13T09:11:26Z</time><hr>99</hr></trkpt>", "<trkpt lat='47' lon='8'><time>1970-01-01T00:00:00Z</time></trkpt>",
			"<trkpt lat='47' lon='8'><time>2099-01-01T00:00:00Z</time></trkpt>", "<trkpt lat='47' lon='8'><time>2020-01-01T00:00:00Z</time></trkpt>",
			"<trkpt lat=47 lon='8'>", "<trkpt lat='47' lon='8", "</trkpt>", "\x01", "&nbsp;", "&#11;", "<!-- -- -->", "<a b c='1'/>", "<hr>", "<", "<?", "]]>",
		},
		wrap: func(s string) string { return "<gpx><trk><trkseg>\n" + s + "</trkseg></trk></gpx>" },
	},
	"tcx": {
		good: func(i int) string {
			return fmt.Sprintf("<Trackpoint><Time>%s</Time><DistanceMeters>%d</DistanceMeters><HeartRateBpm><Value>%d</Value></HeartRateBpm></Trackpoint>\n", stampOf(i), 3*i, 100+i)
		},
		bad: []string{
			"<Trackpoint><HeartRateBpm><Value>99</Value></HeartRateBpm></Trackpoint>", "<Trackpoint><Time>noon</Time><DistanceMeters>9</DistanceMeters></Trackpoint>",
			"<Trackpoint><Time>1970-01-01T00:00:00Z</Time><DistanceMeters>9</DistanceMeters></Trackpoint>", "<Trackpoint><Time>2099-01-01T00:00:00Z</Time><DistanceMeters>9</DistanceMeters></Trackpoint>",
			"</Trackpoint>", "\x0b", "&#11;", "<a b c='1'/>", "<a b='1", "<Cadence>",
		},
		wrap: func(s string) string {
			return "<TrainingCenterDatabase><Activities><Activity Sport='Running'><Lap StartTime='" + stampOf(0) + "'><TotalTimeSeconds>9</TotalTimeSeconds><Track>\n" + s + "</Track></Lap></Activity></Activities></TrainingCenterDatabase>"
		},
	},
	"export": {
		good: func(i int) string {
			at := race.Add(seconds(60 * i)).Format("2006-01-02 15:04:05 -0700")
			return fmt.Sprintf(`<Record type="HKQuantityTypeIdentifierHeartRate" sourceName="W" unit="count/min" startDate="%s" endDate="%s" value="%d"/>`+"\n", at, at, 60+i)
		},
		bad: []string{
			`<Record/>`, `<Record type="HKQuantityTypeIdentifierHeartRate" unit="count/min" startDate="x" endDate="x" value="6"/>`,
			`<Record type="HKQuantityTypeIdentifierHeartRate" unit="count/min" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="x"/>`,
			`<Record type="HKQuantityTypeIdentifierHeartRate" A b="1" value="6"/>`, `<Record type="HKQuantityTypeIdentifierHeartRate`, `<Record type="a`, `</Record>`, "\x0b", "\xff", "&#x0b;",
			`<Workout/>`, `<ActivitySummary dateComponents="x"/>`, `<Record>`, `<Me HKCharacteristicTypeIdentifierDateOfBirth="x"/>`, `<`, `<!x>`,
		},
		wrap: func(s string) string { return "<HealthData>\n" + s + "</HealthData>" },
	},
	"csv": {
		good: func(i int) string {
			return fmt.Sprintf("%s,\"[1]\",\"[%d]\"\n", race.Add(seconds(60*i)).Format(time.RFC3339), 60+i)
		},
		bad: []string{
			"x,\"[1]\",\"[60]\"\n", ",,\n", "a\n", "1970-01-01T00:00:00Z,\"[1]\",\"[60]\"\n", "2026-01-01T00:00:00Z,\"[1\",\"[60]\"\n",
			"2026-01-01T00:00:00Z,\"[1]\",\"[9999]\"\n", "2026-01-01T00:00:00Z,\"[1]\",\"[x]\"\n", "\x0b\n",
		},
		wrap: func(s string) string { return "start,duration,value\n" + s },
	},
}

// A random good file with one random bad item gives what the good file gives.
func TestTextFile_skipsOnlyTheInvalidItem(t *testing.T) {
	for name, f := range textFormats {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "raw_hr_hr.csv") // a CSV file is known by its name
			read := func(text string) (*recordingSink, fileimport.Report) {
				var s recordingSink
				rep, err := importNamed(t, path, text, &s)
				require.NoError(t, err)
				return &s, rep
			}
			for c := range prove.Sequential(100, 100, 10_000) {
				random := rand.New(rand.NewPCG(uint64(c), 1))
				items := make([]string, 3+random.IntN(20))
				for i := range items {
					items[i] = f.good(i)
				}
				want, _ := read(f.wrap(strings.Join(items, "")))
				bad := f.bad[random.IntN(len(f.bad))]
				at := random.IntN(len(items) + 1)
				got, rep := read(f.wrap(strings.Join(slices.Insert(slices.Clone(items), at, bad), "")))
				require.True(t, reflect.DeepEqual(want.samples, got.samples), "case %d: %q", c, bad)
				require.Len(t, got.summaries["workouts"], len(want.summaries["workouts"]), "case %d", c)
				require.Len(t, got.streams, len(want.streams), "case %d", c)
				require.NotEmpty(t, rep.Skipped, "case %d: it is told", c)
			}
		})
	}
}

// A random FIT file with one random bad record gives what the good file gives.
func TestFIT_skipsOnlyTheInvalidRecord(t *testing.T) {
	at := func(when time.Time, pairs ...any) proto.Message {
		return message(mesgnum.Record, append([]any{byte(fieldnum.RecordTimestamp), fitTime(when), byte(fieldnum.RecordHeartRate), uint8(99)}, pairs...)...)
	}
	for c := range prove.Sequential(100, 100, 10_000) {
		random := rand.New(rand.NewPCG(uint64(c), 2))
		n := 3 + random.IntN(20)
		messages := []proto.Message{fileID(typedef.FileActivity)}
		for i := range n {
			messages = append(messages, record(i, uint8(100+i), float64(3*i)))
		}
		end := session(0, float64(n), typedef.SportRunning, typedef.SubSportGeneric)
		want, _, err := importBytes(t, encodeFIT(t, append(slices.Clone(messages), end)), nil)
		require.NoError(t, err)
		bad := []proto.Message{
			message(mesgnum.Record, byte(fieldnum.RecordHeartRate), uint8(99)),
			at(time.Unix(631065600+1000, 0)), at(time.Date(1998, 7, 3, 0, 0, 0, 0, time.UTC)), at(race.AddDate(9, 0, 0)), at(race.AddDate(0, 0, -8)), at(race.AddDate(0, -1, 0)),
		}[random.IntN(6)]
		got, rep, err := importBytes(t, encodeFIT(t, append(slices.Insert(slices.Clone(messages), 1+random.IntN(n), bad), end)), nil)
		require.NoError(t, err)
		require.Equal(t, want.samples, got.samples, "case %d", c)
		require.Equal(t, summariesOf[*healthdata.Workout](t, want, "workouts")[0].TimeStart, summariesOf[*healthdata.Workout](t, got, "workouts")[0].TimeStart, "case %d", c)
		require.Equal(t, want.streams[0].Time, got.streams[0].Time, "case %d", c)
		require.NotEmpty(t, rep.Skipped, "case %d: it is told", c)
	}
}

func importNamed(t testing.TB, path, text string, sink fileimport.Sink) (fileimport.Report, error) {
	t.Helper()
	return importNamedWith(t, path, text, sink, nil)
}

func importNamedWith(t testing.TB, path, text string, sink fileimport.Sink, opts *fileimport.Options) (fileimport.Report, error) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return fileimport.ImportFile(t.Context(), path, sink, opts)
}
