package healthlab_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

func TestInvalidError_textNamesPathsAndMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		add  func(p *healthlab.Problems)
		want string
	}{
		{"no path", func(p *healthlab.Problems) {
			p.Add("json", "not JSON")
		}, "invalid: not JSON"},
		{"names and positions", func(p *healthlab.Problems) {
			p.Add("missing", "required", "items", 0, "marker_id")
		}, "invalid: items[0].marker_id: required"},
		{"position first", func(p *healthlab.Problems) {
			p.Add("missing", "required", 2, 3)
		}, "invalid: [2][3]: required"},
		{"two", func(p *healthlab.Problems) {
			p.Add("missing", "required", "a")
			p.Add("too_long", "at most 50 characters", "b")
		}, "invalid: a: required; b: at most 50 characters"},
		{"five", func(p *healthlab.Problems) {
			for range 5 {
				p.Add("missing", "required", "a")
			}
		}, "invalid: a: required; a: required; a: required; a: required; a: required"},
		{"more than five", func(p *healthlab.Problems) {
			for range 7 {
				p.Add("missing", "required", "a")
			}
		}, "invalid: a: required; a: required; a: required; a: required; a: required; and 2 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p healthlab.Problems
			tt.add(&p)
			err := p.Err()
			require.EqualError(t, err, tt.want)
			require.ErrorIs(t, err, healthlab.Invalid)
			var invalid *healthlab.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, []healthlab.Problem(p), invalid.Problems)
		})
	}
}

func TestProblems_withoutAProblemAreNoError(t *testing.T) {
	var p healthlab.Problems
	err := p.Err()
	require.True(t, err == nil) // the interface itself, not a nil pointer in it
	require.EqualError(t, &healthlab.InvalidError{}, "invalid")
}

func TestProblemsUnder_prefixesThePathOfACopy(t *testing.T) {
	var item healthlab.Problems
	item.Add("missing", "required", "marker_id")
	item = append(item, healthlab.Problem{Code: "limit", Msg: "too many", Context: map[string]any{"max": 3}})

	var p healthlab.Problems
	prefix := make([]any, 0, 8) // room that a careless append would write into
	prefix = append(prefix, "items", 0)
	p.Under(item, prefix...)
	p.Under(item, append(prefix[:1], 1)...)
	p.Under(item)
	p.Under(nil, "nothing")

	require.Equal(t, healthlab.Problems{
		{Path: []any{"items", 0, "marker_id"}, Code: "missing", Msg: "required"},
		{Path: []any{"items", 0}, Code: "limit", Msg: "too many", Context: map[string]any{"max": 3}},
		{Path: []any{"items", 1, "marker_id"}, Code: "missing", Msg: "required"},
		{Path: []any{"items", 1}, Code: "limit", Msg: "too many", Context: map[string]any{"max": 3}},
		{Path: []any{"marker_id"}, Code: "missing", Msg: "required"},
		{Path: []any{}, Code: "limit", Msg: "too many", Context: map[string]any{"max": 3}},
	}, p)
	require.Equal(t, []any{"marker_id"}, item[0].Path, "the part is as it was")
}

func TestRuleError_hasItsTypeTextAndKind(t *testing.T) {
	err := error(&healthlab.RuleError{Type: "CANCEL_NOT_ALLOWED", Msg: "the sample has arrived"})
	require.EqualError(t, err, "CANCEL_NOT_ALLOWED: the sample has arrived")
	require.ErrorIs(t, err, healthlab.Precondition)
	require.NotErrorIs(t, err, healthlab.Invalid)

	err = &healthlab.RuleError{Kind: healthlab.Exhausted, Type: "USER_LIMIT", Msg: "a sandbox has 50 users"}
	require.ErrorIs(t, err, healthlab.Exhausted)
	require.False(t, errors.Is(err, healthlab.Precondition))
}
