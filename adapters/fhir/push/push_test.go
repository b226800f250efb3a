package push_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a server has in the end is what a read gives: of what was there before the pipeline, of changes,
// corrections and removals.
func TestPush_serverEndsWithTheResourcesThatReadsReturn(t *testing.T) {
	c := newClinic(t)
	ann, ben := c.person("ann"), c.person("ben")
	for d := range 5 {
		c.measure(ann, "heartrate", c.noon(d+1), 60+float64(d))
		c.measure(ben, "weight", c.noon(d+1), 70+float64(d))
	}
	p := c.pipeline()
	c.push()
	c.agree(ann, ben)

	c.measure(ann, "heartrate", c.noon(2).Add(time.Hour), 90) // corrects a day
	c.measure(ann, "respiratory_rate", c.noon(400), 14)
	c.remove(ben, "weight", c.noon(1))
	c.push()
	c.agree(ann, ben)
	gone := c.server.of("Observation", base+"/Observation")
	withdrawn := 0
	for _, r := range gone {
		if r.last()["status"] == "entered-in-error" {
			withdrawn++
			require.NotContains(t, r.last(), "valueQuantity")
		}
	}
	require.Equal(t, 1, withdrawn)

	// What was removed and comes again is there again.
	c.measure(ben, "weight", c.noon(1), 71)
	c.push()
	c.agree(ann, ben)

	order := c.order(ann)
	c.push()
	c.agree(ann, ben)
	require.NotEmpty(t, order)

	// A day that has not ended is preliminary, and final when it has.
	c.measure(ann, "heartrate", c.clock.now(), 55)
	c.push()
	c.agree(ann, ben)
	c.clock.pass(48 * time.Hour)
	c.push()
	c.agree(ann, ben)

	// Nothing is sent where nothing has changed.
	before, _ := c.server.count()
	c.clock.pass(48 * time.Hour)
	c.push()
	after, _ := c.server.count()
	require.Equal(t, before, after)
	st, err := c.pipelines.State(t.Context(), c.team, p.ID)
	require.NoError(t, err)
	require.Zero(t, st.Waiting)
	require.Zero(t, st.DeadLetters)
	require.Empty(t, st.LastError)
}
