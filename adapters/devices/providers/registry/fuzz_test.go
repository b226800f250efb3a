package registry_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
)

// Whatever a page of a kind holds, it is read or refused, and equal pages give equal data.
func FuzzRead(f *testing.F) {
	folders := map[string]string{"google_health": "googlehealth", "dexcom_eu": "dexcom"}
	for _, e := range registry.All() {
		folder := folders[e.Slug]
		if folder == "" {
			folder = e.Slug
		}
		pages, err := filepath.Glob("../" + folder + "/testdata/*.json")
		require.NoError(f, err)
		for _, page := range pages {
			body, err := os.ReadFile(page)
			require.NoError(f, err)
			f.Add(e.Slug, strings.TrimSuffix(filepath.Base(page), ".json"), body)
		}
	}
	f.Add("wahoo", "file", []byte("\x0e\x10\xd9\x07\x00\x00\x00\x00.FIT\x00\x00"))
	f.Add("google_health", "exercise-tcx", []byte(`{"tcxData": "<TrainingCenterDatabase/>"}`))
	f.Fuzz(func(t *testing.T, slug, kind string, page []byte) {
		e := registry.Find(slug)
		if e == nil {
			t.Skip()
		}
		data, err := e.Read(kind, page)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		again, err := e.Read(kind, page)
		require.NoError(t, err)
		require.Equal(t, data.String(), again.String())
	})
}
