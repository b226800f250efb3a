package appointmenttest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/appointment/appointmenttest"
)

var brokenCenterLists = []conformance.Broken{
	{Name: "counts the page", Suite: badCenters(func(n *appointment.CentersNear) { n.Total = len(n.Centers) }, nil), Subtest: "Near/LikeTheIndex"},
	{Name: "says nothing of what is offered", Suite: badCenters(func(n *appointment.CentersNear) { n.Capabilities = nil }, nil), Subtest: "Near/LikeTheIndex"},
	{Name: "returns the farthest first", Suite: badCenters(func(n *appointment.CentersNear) { slices.Reverse(n.Centers) }, nil), Subtest: "Near/RoundTrip"},
	{Name: "shows a circle a tenth too large", Suite: badCenters(nil, func(q *appointment.CenterQuery) { q.Miles *= 1.1 }), Subtest: "Near/LikeTheIndex"},
	{Name: "asks for no capability", Suite: badCenters(nil, func(q *appointment.CenterQuery) { q.Capabilities = nil }), Subtest: "Near/LikeTheIndex"},
}

type brokenCenters struct {
	appointment.Centers
	spoil func(*appointment.CentersNear)
	ask   func(*appointment.CenterQuery)
}

func (c brokenCenters) CentersNear(ctx context.Context, q appointment.CenterQuery) (appointment.CentersNear, error) {
	if c.ask != nil {
		c.ask(&q)
	}
	near, err := c.Centers.CentersNear(ctx, q)
	if c.spoil != nil {
		c.spoil(&near)
	}
	return near, err
}

func badCenters(spoil func(*appointment.CentersNear), ask func(*appointment.CenterQuery)) func(*testing.T) {
	return func(t *testing.T) {
		appointmenttest.RunCenters(t, func(t testing.TB, list []appointment.Center) appointment.Centers {
			a, err := appointment.NewCenterIndex(list)
			require.NoError(t, err)
			return brokenCenters{a, spoil, ask}
		})
	}
}
