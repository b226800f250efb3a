package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The team's counts come from two services: people and sources, and orders.
func TestTeamMetrics_countUsersSourcesAndOrders(t *testing.T) {
	c := newFixture(t, nil)
	c.placed()
	var m struct {
		Users   int `json:"number_of_users"`
		Sources int `json:"number_of_connected_sources"`
		Tests   int `json:"number_of_ordered_tests"`
	}
	c.get("/v2/user/metrics", 200).JSON(t, &m)
	require.Equal(t, 1, m.Users)
	require.Equal(t, 2, m.Sources)
	require.Equal(t, 1, m.Tests)
}
