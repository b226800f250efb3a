package fileimport

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestJSONMender_dropsItemsThatAreNotValidJSON(t *testing.T) {
	for text, want := range map[string]string{
		`[{"a":1},{"a":NaN},{"a":3}]`:               `[{"a":1},{"a":3}]`,
		`[{"a":1},{"a":61,5},{"a":3}]`:              `[{"a":1},{"a":3}]`,
		`[{"a":1},{"a":+1},{"a":.5},{"a":3}]`:       `[{"a":1},{"a":3}]`,
		"[{\"a\":1},\n{\"a\":\"x},\n{\"a\":3}]":     `[{"a":1},{"a":3}]`,
		`[{"a":1},{"a":2 "b":3},{"a":3}]`:           `[{"a":1},{"a":3}]`,
		`[{"a":{"b":NaN}},[1,-Infinity,2],{"a":3}]`: `[[1,2],{"a":3}]`,
		`[1,2,]`:         `[1,2]`,
		"[\"a\u0001b\"]": `["ab"]`,
		`{"data":{"metrics":[{"name":"x","data":[{"a":1},{"a"`: `{"data":{"metrics":[{"name":"x","data":[{"a":1}]}]}}`,
		`{"data":{"metrics":[{"name":"x","data":[1,12`:         `{"data":{"metrics":[{"name":"x","data":[1]}]}}`,
		`{"a":[1],"b":NaN,"c":2}`:                              `{"a":[1],"c":2}`,
		`[{"a":"\u12"},{"a":3}]`:                               `[{"a":""},{"a":3}]`,
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			m := newJSONMender(r)
			got, err := io.ReadAll(m)
			require.NoError(t, err, text)
			require.JSONEq(t, want, string(got), text)
		}
	}
}

// Good JSON stays what it is, and of random bytes the mender makes JSON.
func TestJSONMender_outputIsAlwaysValidJSON(t *testing.T) {
	const pieces = "{}[],:\"\\ \n1a-.e0ntruefals"
	for c := range 5000 {
		random := rand.New(rand.NewPCG(uint64(c), 9))
		var b strings.Builder
		for range random.IntN(40) {
			b.WriteByte(pieces[random.IntN(len(pieces))])
		}
		checkMended(t, []byte(b.String()))
	}
}

func FuzzJSONMender(f *testing.F) {
	f.Add([]byte(`{"data":{"metrics":[{"name":"a","units":"b","data":[{"date":"c","Avg":61,5}]}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) { checkMended(t, text) })
}

func checkMended(t *testing.T, text []byte) {
	t.Helper()
	m := newJSONMender(strings.NewReader(string(text)))
	got, err := io.ReadAll(m)
	require.NoError(t, err)
	dec := json.NewDecoder(strings.NewReader(string(got)))
	for {
		var v any
		if err := dec.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			require.NoError(t, err, "%q: %q", text, got)
		}
	}
	if json.Valid(text) {
		require.JSONEq(t, string(text), string(got))
		require.Zero(t, m.left)
		require.False(t, m.cut)
	}
}
