package push_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
)

// evaluate runs continuous queries that are due.
func (c *clinic) evaluate() {
	c.t.Helper()
	for {
		list, err := c.s.Continuous.Claim(c.t.Context(), 10)
		require.NoError(c.t, err)
		if len(list) == 0 {
			return
		}
		for _, task := range list {
			require.NoError(c.t, c.s.Continuous.Do(c.t.Context(), task))
		}
	}
}

// Rows of a continuous query become vital signs, follow corrections, and are withdrawn with their rows.
func TestPush_queryRowsBecomeVitalSignsAndAreWithdrawn(t *testing.T) {
	c := newClinic(t)
	ann := c.person("ann")
	p := c.pipeline(func(n *ehr.NewPipeline) { n.Resources = []string{} })
	q, err := c.s.Continuous.Create(t.Context(), c.team, &continuous.Definition{
		Slug: "vitals", Title: "Vitals", FHIR: true, Quiet: true,
		Query: aggregate.Query{
			Select: []aggregate.Expr{
				aggregate.Keys(), aggregate.Max.Of(aggregate.Samples("heartrate")), aggregate.Mean.Of(aggregate.Samples("weight")),
				aggregate.Mean.Of(aggregate.Samples("respiratory_rate")), aggregate.Count.Of(aggregate.Samples("heartrate")),
			},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
		},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"heart_rate", "body_weight", "respiratory_rate"}, q.FHIRMappers)
	c.measure(ann, "heartrate", c.noon(3), 60)
	c.measure(ann, "heartrate", c.noon(3).Add(time.Hour), 80)
	c.measure(ann, "weight", c.noon(2), 70)
	c.measure(ann, "respiratory_rate", c.noon(1), 14)
	values := func() map[string]float64 {
		c.clock.pass(time.Hour)
		c.evaluate()
		c.push()
		out := map[string]float64{}
		for _, r := range c.server.of("Observation", base+"/Observation") {
			o := r.last()
			if o["status"] == "final" {
				code := o["code"].(object)["coding"].([]any)[0].(object)["code"].(string)
				out[code+" "+o["effectiveDateTime"].(string)] = o["valueQuantity"].(object)["value"].(float64)
				require.NotEmpty(t, o["method"])
				require.Equal(t, "vital-signs", o["category"].([]any)[0].(object)["coding"].([]any)[0].(object)["code"])
			}
		}
		return out
	}
	day := func(d int) string { return c.noon(d).Format(time.DateOnly) }
	third, second, first := day(3), day(2), day(1)
	require.Equal(t, map[string]float64{"8867-4 " + third: 80, "29463-7 " + second: 70, "9279-1 " + first: 14}, values())
	at := c.noon(3)
	c.measure(ann, "heartrate", at, 90)
	c.remove(ann, "weight", c.noon(2))
	require.Equal(t, map[string]float64{"8867-4 " + third: 90, "9279-1 " + first: 14}, values())

	// A pipeline that does not take them has none of them.
	off := false
	_, err = c.pipelines.Update(t.Context(), c.team, p.ID, ehr.Patch{Queries: &off})
	require.NoError(t, err)
	c.measure(ann, "heartrate", at, 99)
	require.Equal(t, 90.0, values()["8867-4 "+third])
}
