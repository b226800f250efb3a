package work_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

func TestFailureLog_warnsOfTheFirstFailureOfAnHour(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var f work.FailureLog
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	level := func(after time.Duration, kind string, err error) string {
		out.Reset()
		f.Log(context.Background(), log, noon.Add(after), kind, "pull failed", err, "provider", kind)
		require.Contains(t, out.String(), "provider="+kind)
		_, level, _ := strings.Cut(out.String(), "level=")
		level, _, _ = strings.Cut(level, " ")
		return level
	}
	down := fmt.Errorf("ask the provider: %w", healthlab.Unavailable)
	require.Equal(t, "WARN", level(0, "band", down), "the first of a kind")
	require.Contains(t, out.String(), `cause="ask the provider: unavailable"`)
	require.Equal(t, "INFO", level(time.Minute, "band", down))
	require.Equal(t, "WARN", level(time.Minute, "watch", down), "of another provider")
	require.Equal(t, "WARN", level(time.Minute, "band", healthlab.Invalid), "of another kind of error")
	require.Equal(t, "INFO", level(59*time.Minute, "band", down))
	require.Equal(t, "WARN", level(time.Hour, "band", down), "an hour after the last at WARN")
	require.Equal(t, "INFO", level(time.Hour+time.Minute, "band", down))
}

func TestCause_returnsTheErrorChainWithoutValues(t *testing.T) {
	_, number := strconv.Atoi("planted")
	var at time.Time
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"chain":    {fmt.Errorf("a: %w", fmt.Errorf("b: %w", healthlab.Conflict)), "a: b: conflict"},
		"number":   {number, "strconv.Atoi: parsing …: invalid syntax"},
		"time":     {json.Unmarshal([]byte(`"planted"`), &at), "parsing time …"},
		"key":      {errors.New("column=planted is bad"), "column… is bad"},
		"genitive": {errors.New("the provider's answer to 'planted's name' ends"), "the provider's answer to … ends"},
		"too long": {errors.New(strings.Repeat("é", 200)), strings.Repeat("é", 150) + "…"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, work.Cause(c.err)) })
	}
}
