package fileimport_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
)

// The progress of an import grows from the bytes that are read to those of all files, for files, folders and
// archives, also where files are passed over.
func TestProgress_growsToTheBytesOfAllFiles(t *testing.T) {
	noise := make([]byte, 50_000) // does not pack well
	_, err := rand.NewChaCha8([32]byte{1}).Read(noise)
	require.NoError(t, err)
	track := []byte(`<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><type>running</type><trkseg>` +
		`<trkpt lat="12" lon="-38"><time>2026-03-01T17:00:00Z</time></trkpt><trkpt lat="12.001" lon="-38"><time>2026-03-01T17:01:00Z</time></trkpt>` +
		"<!--" + hex.EncodeToString(noise) + "-->" + `</trkseg></trk></gpx>`)
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	archived := func(method uint16) []byte {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		for _, name := range []string{"a.gpx", "b/c.gpx", "d.txt"} {
			w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
			require.NoError(t, err)
			_, err = w.Write(track)
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		return out.Bytes()
	}
	file := write("one/track.gpx", track)
	packed := write("packed/all.zip", archived(zip.Deflate))
	stored := write("stored/all.zip", archived(zip.Store))
	write("folder/a.gpx", track)
	write("folder/b.zip", archived(zip.Deflate))
	write("folder/notes.txt", []byte("not a recording"))
	for name, run := range map[string]func(*fileimport.Options) error{
		"file": func(o *fileimport.Options) error {
			_, err := fileimport.ImportFile(context.Background(), file, &recordingSink{}, o)
			return err
		},
		"archive": func(o *fileimport.Options) error {
			_, err := fileimport.ImportFile(context.Background(), packed, &recordingSink{}, o)
			return err
		},
		"stored archive": func(o *fileimport.Options) error {
			_, err := fileimport.ImportFile(context.Background(), stored, &recordingSink{}, o)
			return err
		},
		"folder": func(o *fileimport.Options) error {
			_, err := fileimport.ImportDir(context.Background(), filepath.Join(dir, "folder"), &recordingSink{}, o)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var last, whole int64
			steps := 0
			require.NoError(t, run(&fileimport.Options{Progress: func(read, size int64) {
				require.Greater(t, read, last)
				require.LessOrEqual(t, read, size)
				if whole != 0 {
					require.Equal(t, whole, size)
				}
				last, whole = read, size
				steps++
			}}))
			require.Equal(t, whole, last, "all of it")
			if name != "file" {
				require.Greater(t, steps, 2)
			}
		})
	}
	_, err = fileimport.Import(context.Background(), io.MultiReader(bytes.NewReader(track)), &recordingSink{}, &fileimport.Options{Progress: func(_, _ int64) {
		require.Fail(t, "the size of a reader is not known")
	}})
	require.NoError(t, err)
}
