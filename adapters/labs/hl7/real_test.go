package hl7_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
)

// realDataDir is where recorded messages are, if there are any.
func realDataDir() string {
	root := os.Getenv("HEALTHLABTEST_REAL_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data", "real")
	}
	return filepath.Join(root, "hl7")
}

func realData(t *testing.T) string {
	t.Helper()
	dir := realDataDir()
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no recorded messages here: HEALTHLABTEST_REAL_DATA names the folder that has them")
	}
	return dir
}

// A backend without orders reads every recorded message and puts all of it into review.
func TestBackend_withoutOrdersPutsRecordedMessagesIntoReview(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realData(t), "*.hl7"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	b := newBench(t, nil)
	results, withTests := 0, map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		m, err := er7.Parse(raw, nil)
		require.NoError(t, err)
		in, err := hl7.Read(m, nil)
		require.NoError(t, err, filepath.Base(file))
		obr, keys := 0, map[string]bool{}
		for s := range m.Segments() {
			if s.Name() == "OBR" {
				obr++
			}
		}
		tests := 0
		for _, r := range in.Tests {
			if len(r.Codes) > 0 || r.Status != "" {
				tests++
			}
			for _, o := range r.Observations {
				results++
				key := strings.Join(r.Codes, "|") + r.Filler + o.Key
				require.False(t, keys[key], "%s: two results are one", filepath.Base(file))
				keys[key] = true
			}
		}
		require.LessOrEqual(t, tests, obr)
		require.GreaterOrEqual(t, len(in.Tests), obr, filepath.Base(file))
		withTests[file] = len(in.Tests) > 0
		want := "AA"
		if len(in.Refused) > 0 {
			want = "AE"
			require.Contains(t, string(raw), "|RP|", filepath.Base(file))
		}
		require.Equal(t, want, b.code(raw), filepath.Base(file))
	}
	require.Empty(t, b.told())
	require.Greater(t, results, 80)
	list, err := b.back.Review(t.Context(), 0, 1000)
	require.NoError(t, err)
	// Some are equal but for their headers, or are about no order.
	kept := map[string]bool{}
	for _, d := range list {
		kept[string(d.Raw)] = true
	}
	for file, has := range withTests {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		if has && !kept[string(raw)] {
			require.True(t, sameBody(t, raw, list), filepath.Base(file))
		}
	}
}

func body(t *testing.T, raw []byte) string {
	m, err := er7.Parse(raw, nil)
	require.NoError(t, err)
	var out []string
	for s := range m.Segments() {
		if s.Name() != "MSH" {
			out = append(out, s.Raw())
		}
	}
	return strings.Join(out, "\r")
}

func sameBody(t *testing.T, raw []byte, list []labjournal.Delivery) bool {
	for _, d := range list {
		if body(t, d.Raw) == body(t, raw) {
			return true
		}
	}
	return false
}

// code is what a message is answered with, in either mode; AA if the sender wants no
// answer.
func (b *bench) code(raw []byte) string {
	answer := b.back.Handle(b.t.Context(), raw, nil)
	if answer == nil {
		return "AA"
	}
	m, err := er7.Parse(answer, nil)
	require.NoError(b.t, err)
	return "A" + m.Segment("MSA").Field(1).Text()[1:]
}
