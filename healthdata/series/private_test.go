package series_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

func TestPrint_containsNoValueOfAPerson(t *testing.T) {
	s := series.Sample{Time: 424242424242, End: 424242424243, Value: 424242, Value2: 424243, Attrs: series.Attrs{Text: "marker", App: "marker"}}
	b := blockOf(s)
	c := chunkOf(t, b)
	red, err := series.NewReducer(series.Reduction{Edges: []int64{0, s.Time + 1}})
	require.NoError(t, err)
	red.Block(b)
	for _, v := range []any{s, &s, s.Attrs, b, b.Runs[0], b.Runs, c.Header, c, []series.Chunk{c}, red.Buckets()[0]} {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("seen", "what", v)
		text := fmt.Sprintf("%v %+v %#v %s %s", v, v, v, v, log.String())
		require.NotContains(t, text, "4242")
		require.NotContains(t, text, "marker")
	}
}
