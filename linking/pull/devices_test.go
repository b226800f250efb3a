package pull_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// catalogue is a provider that lists devices apart from data.
type catalogue struct {
	mu    sync.Mutex
	held  []linking.PullItem
	lists bool
	asked map[string]int
}

func (c *catalogue) Pulls(resource string) bool { return c.lists && resource == "device" }

func (c *catalogue) Pull(_ context.Context, r linking.PullRequest) (linking.PullPage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[r.Resource]++
	if r.Resource == "device" {
		return linking.PullPage{Items: c.held}, nil
	}
	at, offset := healthlab.At(noon.Add(-time.Hour)), 0
	return linking.PullPage{Items: []linking.PullItem{{Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: []healthdata.Sample{
		{Timestamp: at, TimezoneOffset: &offset, Unit: "bpm", Value: healthdata.Number(60)},
	}}}}, nil
}

// The list of devices is fetched before the data, and data belongs to the only device. The
// parked is not fetched every quarter of an hour, but by a refresh.
func TestPull_fetchesDevicesBeforeTheirData(t *testing.T) {
	text := func(s string) *string { return &s }
	w := newFixture(t, nil, func(p *healthdata.Provider) {
		p.Resources = []healthdata.ProviderResource{{Resource: "heartrate"}, {Resource: "device"}}
	})
	somebody := "somebody else"
	c := &catalogue{lists: true, asked: map[string]int{}, held: []linking.PullItem{
		{Source: healthdata.Source{Type: healthdata.SourceWatch}, Device: &healthdata.DeviceInfo{ID: text("serial-1"), Version: text("1")}},
		{Owner: &somebody, Device: &healthdata.DeviceInfo{ID: text("serial-2")}},
		{Device: &healthdata.DeviceInfo{Version: text("7")}},
		{Unparsed: []linking.UnparsedItem{{Item: []byte("x"), Problems: []healthlab.Problem{{Path: []any{"device"}, Code: "missing", Msg: "nothing"}}}}},
	}}
	s, err := pull.New(w.spy, w.health, w.refresher, map[string]linking.ProviderConnector{band: {Puller: c}}, &pull.Options{Now: w.cloud.now})
	require.NoError(t, err)
	ann := w.person("ann")
	w.idle(s)
	list, err := w.health.Devices(t.Context(), team, ann)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, []any{"serial-1", "1", healthdata.SourceWatch}, []any{*list[0].DeviceID, *list[0].Version, list[0].SourceType})
	page, err := w.health.Samples(t.Context(), team, ann, healthdata.SampleQuery{Resource: "heartrate"})
	require.NoError(t, err)
	require.Equal(t, &list[0].ID, page.Groups[0].Source.DeviceID, "it is the only one")
	bad, err := w.spy.Quarantined(t.Context(), team, ann, 10)
	require.NoError(t, err)
	codes := map[string]int{}
	for _, r := range bad {
		require.Equal(t, "device", r.Resource)
		codes[r.Reasons[0].Code]++
	}
	require.Equal(t, map[string]int{"other_user": 1, "missing": 2}, codes)

	seen, _, err := s.Histories(t.Context(), pull.StatusQuery{Team: team, User: ann, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"device"}, seen[0].Providers[band].NotPulled, "a list has no history")

	before := c.asked["device"]
	require.Equal(t, 1, before)
	for range 40 {
		w.wait(30 * time.Minute)
		w.idle(s)
	}
	require.Equal(t, before, c.asked["device"])
	w.wait(6 * time.Hour)
	w.idle(s)
	require.Equal(t, before+1, c.asked["device"], "about once a day")

	c.mu.Lock()
	c.held[0].Device = &healthdata.DeviceInfo{ID: text("serial-1"), Version: text("2")}
	c.mu.Unlock()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	got, err := s.Refresh(t.Context(), team, ann, 5*time.Second)
	stop()
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.Equal(t, []string{band + "/device", band + "/vitals/heartrate"}, got.Refreshed)
	list, err = w.health.Devices(t.Context(), team, ann)
	require.NoError(t, err)
	require.Equal(t, "2", *list[0].Version)

	// A provider without a list of devices gets no request for one.
	c.lists, c.asked = false, map[string]int{}
	s, err = pull.New(w.spy, w.health, w.refresher, map[string]linking.ProviderConnector{band: {Puller: c}}, &pull.Options{Now: w.cloud.now})
	require.NoError(t, err)
	w.person("bob")
	w.idle(s)
	require.Zero(t, c.asked["device"])
	require.NotZero(t, c.asked["heartrate"])
}
