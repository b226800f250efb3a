package aggregate_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

var team, user = queryoracle.Team, queryoracle.User

func key(resource, provider string, t healthdata.SourceType, part string) healthdata.SeriesKey {
	return healthdata.SeriesKey{Resource: resource, Provider: provider, SourceType: t, Part: part}
}

func service(t require.TestingT, p *queryoracle.Person, opts *aggregate.Options) *aggregate.Service {
	s, err := aggregate.New(p, opts)
	require.NoError(t, err)
	return s
}

// ask answers a request that is written as JSON.
func ask(t *testing.T, s *aggregate.Service, body string) string {
	t.Helper()
	req, err := s.Decode([]byte(body), false)
	require.NoError(t, err)
	out, err := s.Query(t.Context(), team, user, &req)
	require.NoError(t, err)
	return string(out.AppendJSON(nil))
}

// table is the columns of a one-query answer.
func table(t *testing.T, s *aggregate.Service, body string) string {
	t.Helper()
	var out struct {
		Results []struct {
			Table json.RawMessage `json:"table"`
		} `json:"results"`
	}
	require.NoError(t, json.Unmarshal([]byte(ask(t, s, body)), &out))
	require.Len(t, out.Results, 1)
	return string(out.Results[0].Table)
}

func over(days, anchor, query string) string {
	return `{"timeframe":{"type":"relative","anchor":"` + anchor + `","past":{"unit":"day","value":` + days + `}},"queries":[` + query + `]}`
}

// at is an instant in microseconds.
func at(s string) int64 {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

func ptr[T any](v T) *T { return &v }

func date(s string) healthlab.Date {
	d, err := healthlab.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}
