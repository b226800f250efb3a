package double_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/dexcom"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/googlehealth"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/oura"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/polar"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/strava"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/suunto"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/wahoo"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/whoop"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/withings"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

var readers = map[string]func(kind string, page []byte) (rest.Data, error){
	"dexcom": dexcom.Read, "googlehealth": googlehealth.Read, "oura": oura.Read, "polar": polar.Read, "strava": strava.Read, "suunto": suunto.Read,
	"wahoo": wahoo.Read, "whoop": whoop.Read, "withings": withings.Read,
}

// variants calls each with a document in which one value is another, for all of its values.
func variants(v any, each func()) {
	others := []any{nil, []any{}, map[string]any{}, "", "x", -1.5, 1e300, true}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			was := v[name]
			for _, other := range others {
				v[name] = other
				each()
			}
			delete(v, name)
			each()
			v[name] = was
			variants(was, each)
		}
	case []any:
		for i, was := range v {
			for _, other := range others {
				v[i] = other
				each()
			}
			v[i] = was
			variants(was, each)
		}
	}
}

// A page with any value replaced is read without a panic.
func TestRead_pageWithAnyValueReplacedDoesNotPanic(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(readers)) {
		t.Run(name, func(t *testing.T) {
			pages, err := filepath.Glob("../" + name + "/testdata/*.json")
			require.NoError(t, err)
			require.NotEmpty(t, pages)
			for _, page := range pages {
				body, err := os.ReadFile(page)
				require.NoError(t, err)
				var doc any
				require.NoError(t, json.Unmarshal(body, &doc))
				variant := 0
				variants(doc, func() {
					if variant++; variant%prove.Stride(5) != 0 {
						return
					}
					changed, err := json.Marshal(doc)
					require.NoError(t, err)
					defer func() {
						if p := recover(); p != nil {
							t.Errorf("%s: %v: %s", page, p, changed)
						}
					}()
					_, _ = readers[name](strings.TrimSuffix(filepath.Base(page), ".json"), changed) // a refusal is an answer, too
				})
			}
		})
	}
}
