package fileimport_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muktihari/fit/encoder"
	"github.com/muktihari/fit/profile/basetype"
	"github.com/muktihari/fit/profile/factory"
	"github.com/muktihari/fit/profile/typedef"
	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/profile/untyped/mesgnum"
	"github.com/muktihari/fit/proto"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func fitTime(t time.Time) uint32 { return uint32(t.Unix() - 631065600) }

// message makes a message of pairs of a field's number and its raw value.
func message(num typedef.MesgNum, pairs ...any) proto.Message {
	m := proto.Message{Num: num}
	for i := 0; i < len(pairs); i += 2 {
		m.Fields = append(m.Fields, factory.CreateField(num, pairs[i].(byte)).WithValue(pairs[i+1]))
	}
	return m
}

func encodeFIT(t testing.TB, messages []proto.Message, opts ...encoder.Option) []byte {
	t.Helper()
	var b bytes.Buffer
	opts = append(opts, encoder.WithProtocolVersion(proto.V2))
	require.NoError(t, encoder.New(&b, opts...).Encode(&proto.FIT{Messages: messages}))
	return b.Bytes()
}

func fileID(kind typedef.File) proto.Message {
	return message(mesgnum.FileId, byte(fieldnum.FileIdType), kind, byte(fieldnum.FileIdSerialNumber), uint32(77),
		byte(fieldnum.FileIdTimeCreated), fitTime(race))
}

var race = time.Date(2026, 4, 18, 6, 30, 0, 0, time.UTC)

// record is one second of a race: heart rate, cadence, speed, a position on the way
// north.
func record(second int, beats uint8, metres float64) proto.Message {
	return message(mesgnum.Record,
		byte(fieldnum.RecordTimestamp), fitTime(race.Add(time.Duration(second)*time.Second)),
		byte(fieldnum.RecordHeartRate), beats,
		byte(fieldnum.RecordCadence), uint8(80),
		byte(fieldnum.RecordPower), uint16(210+second),
		byte(fieldnum.RecordAltitude), uint16((100+500)*5),
		byte(fieldnum.RecordSpeed), uint16(3250),
		byte(fieldnum.RecordDistance), uint32(metres*100),
		byte(fieldnum.RecordPositionLat), int32((47+metres/111_000)*(1<<31)/180),
		byte(fieldnum.RecordPositionLong), int32(17*(1<<30)/180),
	)
}

func session(second int, elapsed float64, sport typedef.Sport, sub typedef.SubSport) proto.Message {
	return message(mesgnum.Session,
		byte(fieldnum.SessionTimestamp), fitTime(race.Add(30*time.Second)),
		byte(fieldnum.SessionStartTime), fitTime(race.Add(time.Duration(second)*time.Second)),
		byte(fieldnum.SessionTotalElapsedTime), uint32(elapsed*1000),
		byte(fieldnum.SessionTotalTimerTime), uint32(elapsed*1000-500),
		byte(fieldnum.SessionSport), sport, byte(fieldnum.SessionSubSport), sub,
		byte(fieldnum.SessionTotalCycles), uint32(12),
		byte(fieldnum.SessionTotalCalories), uint16(9),
	)
}

// raceMessages is a race of three sports in 30 s, two hours east of UTC.
func raceMessages() []proto.Message {
	out := []proto.Message{
		fileID(typedef.FileActivity),
		message(mesgnum.DeveloperDataId, byte(fieldnum.DeveloperDataIdDeveloperDataIndex), uint8(0)),
		message(mesgnum.FieldDescription,
			byte(fieldnum.FieldDescriptionDeveloperDataIndex), uint8(0),
			byte(fieldnum.FieldDescriptionFieldDefinitionNumber), uint8(0),
			byte(fieldnum.FieldDescriptionFitBaseTypeId), basetype.Uint8,
			byte(fieldnum.FieldDescriptionFieldName), []string{"mood"}),
	}
	for s := range 30 {
		r := record(s, uint8(120+s), float64(s)*3.25)
		r.DeveloperFields = []proto.DeveloperField{{Num: 0, DeveloperDataIndex: 0, Value: proto.Uint8(7)}}
		out = append(out, r)
	}
	return append(out,
		session(0, 10, typedef.SportSwimming, typedef.SubSportOpenWater),
		session(10, 10, typedef.SportCycling, typedef.SubSportRoad),
		session(20, 10, typedef.SportRunning, typedef.SubSportGeneric),
		message(mesgnum.Activity,
			byte(fieldnum.ActivityTimestamp), fitTime(race.Add(30*time.Second)),
			byte(fieldnum.ActivityLocalTimestamp), fitTime(race.Add(2*time.Hour+31*time.Second))),
	)
}

func triathlon(t testing.TB) []byte { return encodeFIT(t, raceMessages()) }

func importBytes(t testing.TB, data []byte, opts *fileimport.Options) (*recordingSink, fileimport.Report, error) {
	t.Helper()
	var s recordingSink
	rep, err := fileimport.Import(t.Context(), bytes.NewReader(data), &s, opts)
	return &s, rep, err
}

func TestFIT_eachSessionIsAWorkoutWithItsStream(t *testing.T) {
	s, rep, err := importBytes(t, triathlon(t), &fileimport.Options{SourceType: healthdata.SourceWatch, Provider: "acme"})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"workouts": 3}, rep.Summaries)
	require.Equal(t, 3, rep.Streams)
	require.Equal(t, map[string]int{"heartrate": 30}, rep.Samples)
	ids := map[string]bool{}
	for i, w := range summariesOf[*healthdata.Workout](t, s, "workouts") {
		require.Equal(t, []string{"open_water_swimming", "road_biking", "running"}[i], w.Sport.Slug)
		require.Equal(t, healthdata.SourceWatch, w.Source.Type)
		require.Equal(t, "acme", w.Source.Provider)
		start := race.Add(time.Duration(i) * 10 * time.Second)
		require.True(t, w.TimeStart.Equal(start))
		require.True(t, w.TimeEnd.Equal(start.Add(10*time.Second)))
		require.Equal(t, 2*3600, *w.TimezoneOffset, "half a minute between two clocks is no zone")
		require.EqualValues(t, 10, *w.MovingTime, "9.5 s by the timer")
		require.EqualValues(t, 120+10*i, *s.streams[i].Heartrate[0])
		require.EqualValues(t, 129+10*i, *w.MaxHR)
		require.InDelta(t, 214.5+10*float64(i), *w.AverageWatts, 1e-9)
		require.Same(t, w, s.streamsOf[i])
		require.Len(t, s.streams[i].Time, 10)
		ids[w.ExternalID] = true
	}
	require.Len(t, ids, 3)
	require.EqualValues(t, 80, *s.streams[1].Cadence[0], "turns on a bike")
	require.EqualValues(t, 160, *s.streams[2].Cadence[0], "steps on foot")
	run := summariesOf[*healthdata.Workout](t, s, "workouts")[2]
	require.EqualValues(t, 24, *run.Steps)
	require.NotEmpty(t, *run.Map.Polyline)
	sample := s.samples["heartrate"][0]
	require.Nil(t, sample.Start)
	require.Equal(t, 2*3600, *sample.TimezoneOffset)
	require.EqualValues(t, 120, sample.Value.Number)
}

// All encodings that devices use give the same recording.
func TestFIT_everyEncodingGivesTheSameRecording(t *testing.T) {
	want, _, err := importBytes(t, triathlon(t), nil)
	require.NoError(t, err)
	for name, opt := range map[string]encoder.Option{
		"compressed timestamps": encoder.WithHeaderOption(encoder.HeaderOptionCompressedTimestamp, 3),
		"big endian":            encoder.WithBigEndian(),
		"many definitions":      encoder.WithHeaderOption(encoder.HeaderOptionNormal, 15),
	} {
		got, _, err := importBytes(t, encodeFIT(t, raceMessages(), opt), nil)
		require.NoError(t, err, name)
		require.Equal(t, want.streams, got.streams, name)
		require.Equal(t, want.samples, got.samples, name)
	}
}

func TestFIT_compressedDistanceContinuesAfterItsWrap(t *testing.T) {
	messages := []proto.Message{fileID(typedef.FileActivity)}
	for i := range 100 {
		sixteenths := (i * 10 * 16) & 0xfff // ten metres each, counted to 256 m
		messages = append(messages, message(mesgnum.Record,
			byte(fieldnum.RecordTimestamp), fitTime(race.Add(time.Duration(i)*time.Second)),
			byte(fieldnum.RecordCompressedSpeedDistance),
			[]byte{0xe8, byte(0x3 | sixteenths&0xf<<4), byte(sixteenths >> 4)}))
	}
	s, _, err := importBytes(t, encodeFIT(t, messages), nil)
	require.NoError(t, err)
	for i, d := range s.streams[0].Distance {
		require.EqualValues(t, 10*i, *d)
		require.EqualValues(t, 10, *s.streams[0].VelocitySmooth[i])
	}
}

// A file may hold several FIT files in sequence. Bytes after them that are no FIT file are
// left out.
func TestFIT_readsEachOfSeveralConcatenatedFiles(t *testing.T) {
	one := triathlon(t)
	s, _, err := importBytes(t, append(bytes.Clone(one), one...), nil)
	require.NoError(t, err)
	require.Len(t, s.streams, 6)

	s, rep, err := importBytes(t, append(bytes.Clone(one), "left over by a broken transfer"...), nil)
	require.NoError(t, err)
	require.Len(t, s.streams, 3)
	require.Equal(t, []string{"30 bytes at the end are left out: they are not another recording"}, rep.Notes)
}

// A truncated file is read up to the cut, and a note says what is missing. A file with a
// wrong byte is read with a note, or refused.
func TestFIT_truncatedFileIsReadUpToTheCut(t *testing.T) {
	good := triathlon(t)
	whole, _, err := importBytes(t, good, nil)
	require.NoError(t, err)
	judge := func(data []byte, at int) int {
		s, rep, err := importBytes(t, data, nil)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid, "byte %d", at)
			require.Zero(t, s.calls, "byte %d", at)
			return 0
		}
		require.NotEmpty(t, rep.Notes, "byte %d", at)
		return len(s.samples["heartrate"])
	}
	last := 0
	for i := range good {
		n := judge(good[:i], i)
		require.GreaterOrEqual(t, n, last, "byte %d", i)
		last = n
		bad := bytes.Clone(good)
		bad[i] ^= 0x20
		judge(bad, i)
	}
	require.Equal(t, 30, last)
	cut, rep, err := importBytes(t, good[:len(good)/2], nil)
	require.NoError(t, err)
	n := len(cut.samples["heartrate"])
	require.Greater(t, n, 5)
	require.Equal(t, whole.samples["heartrate"][0].Value, cut.samples["heartrate"][0].Value)
	require.Equal(t, map[string]int{"workouts": 1}, rep.Summaries, "the sessions are behind the cut")
	require.Contains(t, rep.String(), "note: the file ends before its header says: ")
	require.Contains(t, rep.String(), "left out: the file ends inside a message")
}

// What is wrong with the frame of a file is noted, and its messages are read.
func TestFIT_damagedFrameIsReportedAndItsMessagesRead(t *testing.T) {
	good := triathlon(t)
	want, _, err := importBytes(t, good, nil)
	require.NoError(t, err)
	size := func(data []byte, n int) []byte {
		binary.LittleEndian.PutUint32(data[4:8], uint32(n))
		return data
	}
	for name, c := range map[string]struct {
		data []byte
		note string
	}{
		"checksum":           {append(bytes.Clone(good[:len(good)-2]), 0, 0), "the checksum is wrong"},
		"checksum of header": {append(append(bytes.Clone(good[:12]), 1, 1), good[14:]...), "the checksum is wrong"},
		"no checksum":        {bytes.Clone(good[:len(good)-2]), "the file ends before its header says: 2 bytes are missing"},
		"not closed":         {size(bytes.Clone(good[:len(good)-2]), 0), "the header says that there are no messages"},
		"too long":           {size(bytes.Clone(good), len(good)), "the file ends before its header says: 16 bytes are missing"},
		"garbage behind":     {append(bytes.Clone(good), "garbage"...), "7 bytes at the end are left out: they are not another recording"},
		"too short":          {resealedBehind(size(bytes.Clone(good), len(good)-300)), "the header says another length than the file has"},
	} {
		t.Run(name, func(t *testing.T) {
			got, rep, err := importBytes(t, c.data, nil)
			require.NoError(t, err)
			require.Contains(t, rep.String(), c.note)
			require.Equal(t, want.summaries, got.summaries)
			require.Equal(t, want.samples, got.samples)
			require.Equal(t, want.streams, got.streams)
		})
	}
	// A record whose clock jumped is left out.
	far := append(raceMessages(), message(mesgnum.Record, byte(fieldnum.RecordTimestamp), fitTime(race.AddDate(9, 0, 0)), byte(fieldnum.RecordHeartRate), uint8(99)))
	data := encodeFIT(t, far)
	data[len(data)-1]++
	got, rep, err := importBytes(t, data, nil)
	require.NoError(t, err)
	require.Contains(t, rep.String(), "1  skipped: point before 1990 or in the future")
	require.Equal(t, want.samples, got.samples)
	// Behind the damage of the first of two files, the second is read.
	two := append(bytes.Clone(good), good...)
	two[len(good)-1]++
	got, _, err = importBytes(t, two, nil)
	require.NoError(t, err)
	require.Len(t, got.summaries["workouts"], 6)
}

// resealedBehind makes the checksum at the end right, whatever length the header says.
func resealedBehind(data []byte) []byte {
	header := crcOf(data[:12])
	data[12], data[13] = byte(header), byte(header>>8)
	crc := crcOf(data[:len(data)-2])
	data[len(data)-2], data[len(data)-1] = byte(crc), byte(crc>>8)
	return data
}

// Sessions end where they say, and no later than the next one begins. What lies between two of
// them belongs to neither.
func TestFIT_sessionEndsNoLaterThanTheNextBegins(t *testing.T) {
	messages := []proto.Message{fileID(typedef.FileActivity)}
	for s := range 60 {
		messages = append(messages, record(s, uint8(100+s), float64(s)*3))
	}
	data := encodeFIT(t, append(messages,
		session(0, 10, typedef.SportSwimming, typedef.SubSportOpenWater),
		session(20, 30, typedef.SportCycling, typedef.SubSportRoad), // 10 s longer than it can be
		session(40, 15, typedef.SportRunning, typedef.SubSportGeneric),
	))
	s, rep, err := importBytes(t, data, nil)
	require.NoError(t, err)
	got := summariesOf[*healthdata.Workout](t, s, "workouts")
	for i, want := range []struct{ start, end, records int }{{0, 12, 13}, {20, 40, 20}, {40, 59, 20}} {
		require.True(t, got[i].TimeStart.Equal(race.Add(seconds(want.start))), i)
		require.True(t, got[i].TimeEnd.Equal(race.Add(seconds(want.end))), "%d: %s", i, got[i].TimeEnd)
		require.Len(t, s.streams[i].Time, want.records)
	}
	require.Equal(t, 60-13-20-20, rep.Skipped["record between sessions"])
}

// A strap hands over heart rates after a swim, in messages of their own.
func TestFIT_heartRatesSentAfterASwimAreJoined(t *testing.T) {
	at := fitTime(race)
	pool := func(second int) proto.Message {
		return message(mesgnum.Record, byte(fieldnum.RecordTimestamp), at+uint32(second), byte(fieldnum.RecordDistance), uint32(second*100))
	}
	// Clocks of 12 bits, two in three bytes, 512/1024 s apart.
	first := uint32(0xfff_f00)
	pack := func(clocks ...uint32) (out []byte) {
		for i := 0; i < len(clocks); i += 2 {
			a, b := clocks[i]&0xfff, clocks[i+1]&0xfff
			out = append(out, byte(a), byte(a>>8)|byte(b<<4), byte(b>>4))
		}
		return out
	}
	data := encodeFIT(t, []proto.Message{
		fileID(typedef.FileActivity), pool(0), pool(25), pool(50), session(0, 50, typedef.SportSwimming, typedef.SubSportLapSwimming),
		message(mesgnum.Hr, byte(fieldnum.HrTimestamp), at, byte(fieldnum.HrFractionalTimestamp), uint16(16384),
			byte(fieldnum.HrEventTimestamp), []uint32{first}, byte(fieldnum.HrFilteredBpm), []uint8{100}),
		message(mesgnum.Hr, byte(fieldnum.HrEventTimestamp12), pack(first+512, first+1024, first+1536, first+2048),
			byte(fieldnum.HrFilteredBpm), []uint8{110, 120, 0, 140}),
	})
	s, rep, err := importBytes(t, data, nil)
	require.NoError(t, err)
	require.Empty(t, rep.Skipped)
	got := map[int]float64{}
	for _, v := range s.samples["heartrate"] {
		got[int(v.Timestamp.Sub(race).Seconds())] = v.Value.Number
	}
	require.Equal(t, map[int]float64{0: 100, 1: 115, 2: 140}, got, "the mean of each second")
	require.EqualValues(t, []int64{0, 1, 2, 25, 50}, relative(s.streams[0].Time))
	require.InDelta(t, 50, *summariesOf[*healthdata.Workout](t, s, "workouts")[0].Distance, 1e-9)
}

// A strap that kept more than the watch writes each stretch as a file of its own, in the same chain.
// They are no workouts, wherever they stand and however many there are.
func TestFIT_heartRateFilesOfASwimAreNoWorkouts(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		swims := 1 + r.IntN(2)
		beats := map[int64]bool{} // Unix seconds
		var parts [][]byte
		for i := range swims {
			begin := 10_000 * i
			at := fitTime(race.Add(time.Duration(begin) * time.Second))
			start := session(begin, 100, typedef.SportSwimming, typedef.SubSportLapSwimming)
			parts = append(parts, encodeFIT(t, []proto.Message{
				fileID(typedef.FileActivity), start,
				message(mesgnum.Record, byte(fieldnum.RecordTimestamp), at+50, byte(fieldnum.RecordDistance), uint32(2500)),
			}))
		}
		for range r.IntN(6) {
			second := uint32(r.IntN(400)) // some are after the session
			at, bpm := fitTime(race)+second, uint8(60+r.IntN(100))
			beats[race.Unix()+int64(second)] = true
			of := message(mesgnum.Hr, byte(fieldnum.HrTimestamp), at, byte(fieldnum.HrEventTimestamp), []uint32{1024}, byte(fieldnum.HrFilteredBpm), []uint8{bpm})
			if r.IntN(2) == 0 {
				of = message(mesgnum.Record, byte(fieldnum.RecordTimestamp), at, byte(fieldnum.RecordHeartRate), bpm)
			}
			where := r.IntN(2) // before or behind the first swim
			parts = slices.Insert(parts, where, encodeFIT(t, []proto.Message{fileID(typedef.FileActivity), of}))
		}
		s, rep, err := importBytes(t, slices.Concat(parts...), nil)
		require.NoError(t, err)
		require.Equal(t, swims, rep.Summaries["workouts"])
		got := map[int64]bool{}
		for _, v := range s.samples["heartrate"] {
			got[v.Timestamp.Unix()] = true
		}
		require.Equal(t, beats, got, "all heart rates are kept")
		for _, w := range summariesOf[*healthdata.Workout](t, s, "workouts") {
			require.Equal(t, 100*time.Second, w.TimeEnd.Sub(w.TimeStart.Time), "what the strap measured before or after does not make it longer")
		}
		for _, stream := range s.streams {
			require.LessOrEqual(t, stream.Time[len(stream.Time)-1]-stream.Time[0], int64(100))
		}
	}
}

func relative(times []int64) (out []int64) {
	for _, at := range times {
		out = append(out, at-race.Unix())
	}
	return out
}

func TestFIT_unsetClockIsRefusedAndLaterSetClockApplied(t *testing.T) {
	early := []proto.Message{
		fileID(typedef.FileActivity),
		message(mesgnum.Record, byte(fieldnum.RecordTimestamp), uint32(1000), byte(fieldnum.RecordHeartRate), uint8(90)),
	}
	s, _, err := importBytes(t, encodeFIT(t, early), nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorContains(t, err, "clock")
	require.Zero(t, s.calls)

	zurich, err := time.LoadLocation("Europe/Zurich")
	require.NoError(t, err)
	early = append(early, message(mesgnum.Activity, byte(fieldnum.ActivityTimestamp), uint32(2000),
		byte(fieldnum.ActivityLocalTimestamp), fitTime(race)))
	s, _, err = importBytes(t, encodeFIT(t, early), &fileimport.Options{Zone: zurich})
	require.NoError(t, err)
	require.Equal(t, race.Add(-2*time.Hour-1000*time.Second).Unix(), s.streams[0].Time[0])
	require.Equal(t, 7200, *s.samples["heartrate"][0].TimezoneOffset)
}

func TestFIT_monitoringGivesStepsAndHeartRateByDay(t *testing.T) {
	midnight := time.Date(2026, 4, 18, 22, 0, 0, 0, time.UTC) // two hours east
	clock := fitTime(midnight)
	walking := func(at uint32, total uint32) proto.Message {
		return message(mesgnum.Monitoring, byte(fieldnum.MonitoringTimestamp16), uint16(at),
			byte(fieldnum.MonitoringCurrentActivityTypeIntensity), byte(2<<5|6), byte(fieldnum.MonitoringCycles), total)
	}
	s, _, err := importBytes(t, encodeFIT(t, []proto.Message{
		fileID(typedef.FileMonitoringB),
		message(mesgnum.MonitoringInfo, byte(fieldnum.MonitoringInfoTimestamp), clock-7200,
			byte(fieldnum.MonitoringInfoLocalTimestamp), clock),
		walking(clock-3600, 500),
		message(mesgnum.Monitoring, byte(fieldnum.MonitoringTimestamp16), uint16(clock-1800),
			byte(fieldnum.MonitoringHeartRate), uint8(61)),
		walking(clock, 800),
		walking(clock+600, 90), // a new day counts from zero
	}), nil)
	require.NoError(t, err)
	steps := s.samples["steps"]
	require.Len(t, steps, 3)
	for i, want := range []struct {
		from, to int
		n        float64
	}{{-7200, -3600, 500}, {-1800, 0, 300}, {0, 600, 90}} {
		require.True(t, steps[i].Start.Equal(midnight.Add(seconds(want.from))))
		require.True(t, steps[i].End.Equal(midnight.Add(seconds(want.to))))
		require.Equal(t, want.n, steps[i].Value.Number)
	}
	require.EqualValues(t, 61, s.samples["heartrate"][0].Value.Number)
	days := summariesOf[*healthdata.Activity](t, s, "activity")
	require.Len(t, days, 2)
	require.Equal(t, "2026-04-18", days[0].CalendarDate.String())
	require.EqualValues(t, 800, *days[0].Steps)
	require.EqualValues(t, 61, *days[0].HeartRate.AvgBPM)
	require.EqualValues(t, 90, *days[1].Steps)
}

// monitoringFile is a file of a device that has counted steps and metres since midnight.
func monitoringFile(t testing.TB, steps uint32, bpm uint8, from, to time.Time) []byte {
	t.Helper()
	walking := func(at time.Time, steps uint32) proto.Message {
		return message(mesgnum.Monitoring, byte(fieldnum.MonitoringTimestamp), fitTime(at), byte(fieldnum.MonitoringActivityType), typedef.ActivityTypeWalking,
			byte(fieldnum.MonitoringCycles), steps, byte(fieldnum.MonitoringDistance), 80*steps, byte(fieldnum.MonitoringHeartRate), bpm)
	}
	return encodeFIT(t, []proto.Message{fileID(typedef.FileMonitoringB), walking(from, steps/2), walking(to, steps)})
}

// The files of a day give its greatest totals, in any order, however often they come, and in an archive.
func TestFIT_monitoringFilesOfADayGiveItsGreatestTotals(t *testing.T) {
	hour := func(n int) time.Time { return time.Date(2026, 4, 18, n, 0, 0, 0, time.UTC) }
	files := [][]byte{
		monitoringFile(t, 6000, 62, hour(1), hour(10)), monitoringFile(t, 8000, 90, hour(11), hour(12)), monitoringFile(t, 9500, 71, hour(13), hour(20)),
	}
	greatest := func(s *ingestion) {
		day := stored[*healthdata.Activity](t, s, "activity")[0]
		require.EqualValues(t, 9500, *day.Steps)
		require.InDelta(t, 9500*0.8, *day.Distance, 1)
		require.Equal(t, []float64{62, 90}, []float64{*day.HeartRate.MinBPM, *day.HeartRate.MaxBPM})
		require.Nil(t, day.HeartRate.AvgBPM, "the mean of a file is not that of the day")
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		s, zipped := newIngestion(t), newIngestion(t)
		var names []string
		for i, file := range order {
			s.take(t, files[file])
			names = append(names, fmt.Sprintf("%d.fit", i), string(files[file]))
		}
		greatest(s)
		for _, file := range order {
			counts, _ := s.take(t, files[file])
			require.Zero(t, counts.New+counts.Changed, "file %d after %v", file, order)
		}
		zipped.take(t, archive(t, names...))
		greatest(zipped)
	}
}

func TestFIT_readingsOfMedicalMetersBecomeSamples(t *testing.T) {
	at := fitTime(race)
	s, _, err := importBytes(t, encodeFIT(t, []proto.Message{
		fileID(typedef.FileBloodPressure),
		message(mesgnum.BloodPressure, byte(fieldnum.BloodPressureTimestamp), at,
			byte(fieldnum.BloodPressureSystolicPressure), uint16(121), byte(fieldnum.BloodPressureDiastolicPressure), uint16(79)),
		message(mesgnum.Spo2Data, byte(fieldnum.Spo2DataTimestamp), at, byte(fieldnum.Spo2DataReadingSpo2), uint8(97)),
		message(mesgnum.StressLevel, byte(fieldnum.StressLevelStressLevelTime), at, byte(fieldnum.StressLevelStressLevelValue), int16(33)),
		message(mesgnum.StressLevel, byte(fieldnum.StressLevelStressLevelTime), at+60, byte(fieldnum.StressLevelStressLevelValue), int16(-2)),
		message(mesgnum.RespirationRate, byte(fieldnum.RespirationRateTimestamp), at, byte(fieldnum.RespirationRateRespirationRate), int16(1425)),
	}), nil)
	require.NoError(t, err)
	p := s.samples["blood_pressure"][0]
	require.Nil(t, p.Value)
	require.EqualValues(t, 121, *p.Systolic)
	require.EqualValues(t, 79, *p.Diastolic)
	require.Equal(t, healthdata.SourceCuff, p.source.Type)
	require.EqualValues(t, 97, s.samples["blood_oxygen"][0].Value.Number)
	require.Len(t, s.samples["stress_level"], 1, "below zero is a reason for having no value")
	require.InDelta(t, 14.25, s.samples["respiratory_rate"][0].Value.Number, 1e-12)
}

// A planned course has points but no recorded activity, so nothing is stored.
func TestFIT_plannedCourseStoresNothing(t *testing.T) {
	s, rep, err := importBytes(t, encodeFIT(t, []proto.Message{fileID(typedef.FileCourse), record(0, 100, 0)}), nil)
	require.NoError(t, err)
	require.Zero(t, s.calls)
	require.Len(t, rep.Notes, 1)
}

func TestFIT_fileBeyondTheByteOrPointLimitIsRefused(t *testing.T) {
	data := triathlon(t)
	for name, opts := range map[string]*fileimport.Options{
		"bytes":  {MaxRecordingBytes: int64(len(data)) - 1},
		"points": {MaxPoints: 29},
	} {
		s, _, err := importBytes(t, data, opts)
		var fault *fileimport.FileError
		require.ErrorAs(t, err, &fault, name)
		require.Zero(t, s.calls, name)
	}
	described := raceMessages()[:3]
	for range 300 {
		described = append(described, described[2])
	}
	_, _, err := importBytes(t, encodeFIT(t, described), nil)
	require.ErrorIs(t, err, healthlab.Invalid, "descriptions of developer fields are bounded")
}

// A file of very many minimal records is refused at the limit, before it fills the memory; so
// is one of empty descriptions.
func TestFIT_hostileFileIsRefusedBeforeItFillsTheMemory(t *testing.T) {
	hostile := func(definition []byte, data []byte) []byte {
		body := append(bytes.Clone(definition), bytes.Repeat(data, 4<<20/len(data))...)
		return resealed(append(append(make([]byte, 14), body...), 0, 0))
	}
	for name, file := range map[string][]byte{
		"records":      hostile([]byte{0x40, 0, 0, 20, 0, 1, 3, 1, 2}, []byte{0x80, 99}),
		"descriptions": hostile([]byte{0x40, 0, 0, 206, 0, 0}, []byte{0}),
		"sessions":     hostile([]byte{0x40, 0, 0, 18, 0, 1, 2, 4, 0x86}, []byte{0, 1, 2, 3, 0x40}),
		"weighings":    hostile([]byte{0x40, 0, 0, 30, 0, 1, 0, 2, 0x84}, []byte{0x80, 0, 9}),
	} {
		before := allocated()
		s, _, err := importBytes(t, file, nil)
		require.ErrorIs(t, err, healthlab.Invalid, name)
		want := "the file must have at most 500000 measurements (Options.MaxPoints)"
		if name == "descriptions" {
			want = "the file must have at most 256 descriptions of developer fields"
		}
		require.ErrorContains(t, err, want, name)
		require.Zero(t, s.calls, name)
		require.Less(t, allocated()-before, uint64(320<<20), name) // of which the growing of slices is half
	}
}

func FuzzFIT(f *testing.F) {
	good := triathlon(f)
	f.Add(good)
	f.Add(encodeFIT(f, raceMessages(), encoder.WithHeaderOption(encoder.HeaderOptionCompressedTimestamp, 3)))
	f.Add(good[:len(good)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		data = resealed(data)
		var s recordingSink
		_, err := fileimport.Import(t.Context(), bytes.NewReader(data), &s, &fileimport.Options{MaxPoints: 2000})
		if err != nil {
			require.Zero(t, s.calls, "an error, and yet something was handed over")
			return
		}
		for _, stream := range s.streams {
			require.LessOrEqual(t, len(stream.Time), 2000)
		}
		for _, list := range s.samples {
			for _, v := range list {
				require.True(t, v.Value == nil || !math.IsNaN(v.Value.Number) && !math.IsInf(v.Value.Number, 0))
			}
		}
	})
}

// resealed makes header and checksum right, so that fuzzing gets to the messages.
func resealed(data []byte) []byte {
	if len(data) < 16 {
		return data
	}
	out := bytes.Clone(data)
	out[0] = 14
	copy(out[8:], ".FIT")
	size := len(out) - 16
	for i := range 4 {
		out[4+i] = byte(size >> (8 * i))
	}
	out[12], out[13] = 0, 0
	crc := crcOf(out[:len(out)-2])
	out[len(out)-2], out[len(out)-1] = byte(crc), byte(crc>>8)
	return out
}

// crcOf is the CRC-16 of the FIT protocol (polynomial 0x8005 reflected, no inversion),
// bit by bit.
func crcOf(b []byte) uint16 {
	var c uint16
	for _, v := range b {
		c ^= uint16(v)
		for range 8 {
			odd := c&1 == 1
			c >>= 1
			if odd {
				c ^= 0xa001
			}
		}
	}
	return c
}

func BenchmarkFIT(b *testing.B) {
	messages := []proto.Message{fileID(typedef.FileActivity)}
	for i := range 3600 {
		messages = append(messages, record(i, 140, float64(i)*3))
	}
	data := encodeFIT(b, append(messages, session(0, 3600, typedef.SportRunning, typedef.SubSportGeneric)))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fileimport.Import(b.Context(), bytes.NewReader(data), nowhere{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

var errSink = errors.New("the sink is full")

func TestImport_endsWithTheSinksError(t *testing.T) {
	for name, data := range map[string][]byte{"fit": triathlon(t), "gpx": []byte(smallGPX), "export": []byte(smallExport)} {
		s := recordingSink{fail: errSink}
		_, err := fileimport.Import(t.Context(), bytes.NewReader(data), &s, nil)
		require.ErrorIs(t, err, errSink, name)
		require.Equal(t, 1, s.calls, name)
	}
}

// failing is a reader that breaks off.
type failing struct{ r io.Reader }

func (f failing) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if errors.Is(err, io.EOF) {
		err = errSink
	}
	return n, err
}

func TestImport_readerErrorIsReturnedAndNotReportedAsInvalid(t *testing.T) {
	for name, data := range map[string][]byte{"fit": triathlon(t), "gpx": []byte(smallGPX), "export": []byte(smallExport)} {
		var s recordingSink
		_, err := fileimport.Import(t.Context(), failing{bytes.NewReader(data)}, &s, nil)
		require.ErrorIs(t, err, errSink, name)
		require.NotErrorIs(t, err, healthlab.Invalid, name)
		require.Zero(t, s.calls, name)
	}
}
