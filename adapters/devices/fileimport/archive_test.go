package fileimport_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf16"

	"github.com/muktihari/fit/profile/typedef"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
)

// archive is a ZIP archive of names and contents.
func archive(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		require.NoError(t, err)
		_, err = f.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// plain is a reader that cannot seek.
type plain struct{ io.Reader }

// Each file of an archive is imported, whatever reads it.
func TestArchive_importsEachFileByItsFormat(t *testing.T) {
	data := archive(t, "a/race.fit", string(triathlon(t)), "walk.gpx", smallGPX, "run.tcx", smallTCX, "readme.txt", "hello", "bad.gpx", "<gpx><trk>",
		"apple/export.xml", smallExport)
	file := filepath.Join(t.TempDir(), "all.zip")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	for name, r := range map[string]io.Reader{"bytes": bytes.NewReader(data), "stream": plain{bytes.NewReader(data)}, "file": f} {
		t.Run(name, func(t *testing.T) {
			var s recordingSink
			rep, err := fileimport.Import(t.Context(), r, &s, nil)
			require.NoError(t, err)
			require.Equal(t, fileimport.ZIP, rep.Format)
			require.Len(t, rep.Files, 6)
			workouts := 0
			for _, one := range rep.Files {
				workouts += one.Summaries["workouts"]
				switch one.Name {
				case "readme.txt":
					require.ErrorIs(t, one.Err, fileimport.ErrFormat)
				case "bad.gpx":
					require.ErrorIs(t, one.Err, healthlab.Invalid)
				default:
					require.NoError(t, one.Err, one.Name)
				}
			}
			require.Equal(t, workouts, rep.Summaries["workouts"])
			require.Len(t, s.summaries["workouts"], workouts)
			require.NotEmpty(t, s.samples["weight"], "of the export")
			require.Contains(t, rep.String(), "bad.gpx")
		})
	}
}

// Archives that unpack to too much, or that are damaged, are refused.
func TestArchive_oversizedOrDamagedIsRefused(t *testing.T) {
	zeros := string(make([]byte, 2<<20))
	bomb := archive(t, "a.gpx", zeros)
	liar := bytes.Clone(bomb) // its directory says 20 bytes
	i := bytes.LastIndex(liar, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(liar[i+24:], 20)
	many := make([]string, 0, 2*20_001)
	for range 20_001 {
		many = append(many, "a", "")
	}
	for name, c := range map[string]struct {
		data []byte
		opts *fileimport.Options
		want string
	}{
		"bomb":    {bomb, &fileimport.Options{MaxArchiveBytes: 1 << 20}, "the archive must unpack to at most 1048576 bytes (Options.MaxArchiveBytes)"},
		"entry":   {archive(t, "a.gpx", "<gpx>"+zeros), &fileimport.Options{MaxRecordingBytes: 1 << 20}, "the recording must have at most 1048576 bytes (Options.MaxRecordingBytes)"},
		"liar":    {liar, nil, ""},
		"many":    {archive(t, many...), nil, "the archive must have at most 20000 files"},
		"nested":  {archive(t, "b.zip", string(bomb)), nil, "an archive inside an archive is not read; unpack it first"},
		"nothing": {archive(t, "a.txt", "hello"), nil, "no file of the archive has one of these formats"},
		"cut":     {bomb[:len(bomb)-30], nil, "the file must be a valid ZIP archive"},
	} {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			s, rep, err := importBytes(t, c.data, c.opts)
			require.ErrorIs(t, err, healthlab.Invalid)
			if name == "nested" {
				require.ErrorContains(t, rep.Files[0].Err, c.want)
			} else {
				require.ErrorContains(t, err, c.want)
			}
			require.Zero(t, s.calls)
			require.Less(t, allocated()-before, uint64(64<<20))
		})
	}
	_, err := fileimport.Import(t.Context(), plain{bytes.NewReader(bomb)}, nowhere{}, &fileimport.Options{MaxArchiveBytes: 100})
	require.ErrorIs(t, err, healthlab.Invalid)
}

// packed is data that is packed with gzip.
func packed(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// A recording that is packed with gzip is read as the recording is. Other files are not.
func TestGzip_unpacksOnlyRecordings(t *testing.T) {
	for format, data := range map[fileimport.Format][]byte{fileimport.FIT: triathlon(t), fileimport.GPX: []byte(smallGPX), fileimport.TCX: []byte(smallTCX)} {
		want, _, err := importBytes(t, data, nil)
		require.NoError(t, err)
		got, rep, err := importBytes(t, packed(t, data), nil)
		require.NoError(t, err)
		require.Equal(t, format, rep.Format)
		require.Equal(t, want, got)
	}
	good := packed(t, []byte(smallGPX))
	bad := bytes.Clone(good)
	bad[len(bad)-5] ^= 0xff // its length
	for name, data := range map[string][]byte{"cut": good[:len(good)-12], "damaged": bad} {
		_, rep, err := importBytes(t, data, nil)
		require.NoError(t, err, name)
		require.Equal(t, 1, rep.Summaries["workouts"], name)
		require.Equal(t, 1, rep.Skipped["rest of a gzip file that cannot be unpacked"], name)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"header":  {good[:5], "the gzip file is cut or damaged, and nothing of it can be unpacked"},
		"bomb":    {packed(t, make([]byte, 4<<20)), "the recording must have at most 1048576 bytes (Options.MaxRecordingBytes)"},
		"text":    {packed(t, []byte("hello")), "a gzip file must contain a FIT, GPX or TCX file"},
		"twice":   {packed(t, good), "a gzip file must contain a FIT, GPX or TCX file"},
		"archive": {packed(t, archive(t, "a.gpx", smallGPX)), "a gzip file must contain a FIT, GPX or TCX file"},
		"export":  {packed(t, []byte(smallExport)), "a gzip file must contain a FIT, GPX or TCX file"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := importBytes(t, c.data, &fileimport.Options{MaxRecordingBytes: 1 << 20})
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorContains(t, err, c.want)
			require.Zero(t, s.calls)
		})
	}
}

func FuzzArchive(f *testing.F) {
	good := archive(f, "a.gpx", smallGPX, "b.fit", string(triathlon(f)))
	f.Add(good)
	f.Add(good[:len(good)-10])
	f.Fuzz(func(t *testing.T, data []byte) {
		if !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
			return
		}
		_, err := fileimport.Import(t.Context(), bytes.NewReader(data), nowhere{}, &fileimport.Options{MaxPoints: 2000, MaxArchiveBytes: 1 << 20})
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
		}
	})
}

// Names of files are compared without their form of Unicode, and the files of a desktop are passed over.
func TestArchive_matchesUnicodeFormsOfNamesAndSkipsDesktopFiles(t *testing.T) {
	list := "Activity ID,Activity Date,Activity Name,Activity Type,Elapsed Time,Distance,Filename,Elapsed Time,Moving Time,Distance\n" +
		"9001,\"" + race.Format("Jan 2, 2006, 3:04:05 PM") + "\",L,Run,600,0.5,activities/Lo\u0308we.fit,600,590,500\n"
	files := []string{
		"My export/activities.csv", list, "My export/activities/L\u00f6we.fit", string(encodeFIT(t, append(raceRecords(10), session(0, 10, typedef.SportRunning, typedef.SubSportGeneric)))),
		"__MACOSX/My export/._activities.csv", "\x00\x05\x16\x07", "My export/._x_glucose_1.csv", "\x00\x05\x16\x07",
	}
	_, rep, err := importBytes(t, archive(t, files...), nil)
	require.NoError(t, err)
	require.Equal(t, 1, rep.Streams)
	require.Len(t, rep.Files, 1)
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(files[i])), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600))
	}
	var s recordingSink
	reports, err := fileimport.ImportDir(t.Context(), dir, &s, nil)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	require.Len(t, s.streams, 1)
}

// The recordings of an export belong to its file, whatever the name of that is. An unrelated file owns no recordings.
func TestArchive_recordingsOfAnExportAreImportedOnceUnderAnyName(t *testing.T) {
	list := testdata(t, "strava", "activities.csv")
	for _, c := range []struct {
		name, content, recording string
		workouts                 int
	}{
		{"export.xml", smallExport, "workout-routes/route_1.gpx", 2},
		{"Export.xml", smallExport, "workout-routes/route_1.gpx", 2},
		{"导出.xml", smallExport, "workout-routes/route_1.gpx", 2},
		{"exportar.xml", smallExport, "workout-routes/route_1.gpx", 2},
		{"export (1).xml", smallExport, "workout-routes/route_1.gpx", 2},
		{"export.xml", wideText(smallExport), "workout-routes/route_1.gpx", 2},
		{"activities.csv", list, "activities/7002.gpx", 8},
		{"activities (1).csv", list, "activities/7002.gpx", 8},
		{"Activities.csv", list, "activities/7002.gpx", 8},
		{"my list.csv", list, "activities/7002.gpx", 8},
		{"Activities (2).csv", "Aktivitäts-ID,Aktivitätsdatum\n1,2\n", "activities/7002.gpx", 0},
		{"notes.xml", "<notes/>", "workout-routes/route_1.gpx", 1},
		{"weight.csv", "a,b\n1,2\n", "activities/7002.gpx", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var zipped, unpacked recordingSink
			_, _ = fileimport.Import(t.Context(), bytes.NewReader(archive(t, "a/"+c.name, c.content, "a/"+c.recording, smallGPX)), &zipped, nil)
			require.Len(t, zipped.summaries["workouts"], c.workouts)

			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, filepath.Dir(c.recording)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, c.name), []byte(c.content), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, c.recording), []byte(smallGPX), 0o600))
			_, _ = fileimport.ImportDir(t.Context(), dir, &unpacked, nil)
			require.Len(t, unpacked.summaries["workouts"], c.workouts)
		})
	}
}

// wideText returns a text in UTF-16.
func wideText(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}
