package aggregate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

func TestQuery_randomRequestsEqualTheOracle(t *testing.T) {
	// rapid draws 100 worlds each time, 30 in a plain go test; 600, 2,000 and 100,000 questions.
	const each = 20
	for range prove.Count(1, 50) {
		rapid.Check(t, func(t *rapid.T) {
			w := queryoracle.Draw(t, true)
			s := service(t, w.Person, nil)
			for range each {
				q := queryoracle.DrawQuestion(t, "", "merge", "winner", "fill", "all")
				req, err := s.Decode([]byte(q.Body), false)
				require.NoError(t, err, q.Body)
				out, err := s.Query(t.Context(), team, user, &req)
				require.NoError(t, err, q.Body)
				keys, values := q.Answer(w)
				queryoracle.RequireAnswer(t, q, &out.Frames[0], keys, values)
			}
		})
	}
}
