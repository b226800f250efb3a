package double_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/double"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// Resources that one answer brings are fetched together: a history takes a request for each day and
// each night, not for each resource besides.
func TestPull_resourcesOfOneResponseShareARequest(t *testing.T) {
	one := double.NewPerson(3, noon, 30)
	d := deploy(t, providers["withings"], double.Options{People: []*double.Person{one}})
	u := d.link(one)
	d.fetch([]healthlab.UserID{u})
	const days, nights, pieces, lists = 366, 30, 13, 8
	require.LessOrEqual(t, d.double.Requests(), days+nights+pieces*lists)
	require.Equal(t, len(d.truth(one)), len(d.stored(u)))
	tasks, err := d.store.Pulls().Tasks(t.Context(), team, u)
	require.NoError(t, err)
	for _, x := range tasks {
		if x.Kind == pull.History && healthdata.ResourceBySlug(x.Resource).Class == healthdata.ClassTimeseries && len(d.truth(one)[x.Resource]) > 0 {
			require.NotZero(t, x.DaysWithData(), x.Resource)
		}
	}
}

// The activity that a recording needs is read with it: two requests for each, and the lists.
func TestPull_workoutStreamTakesTwoRequests(t *testing.T) {
	one := double.NewPerson(3, noon, 30)
	d := deploy(t, providers["strava"], double.Options{People: []*double.Person{one}})
	d.fetch([]healthlab.UserID{d.link(one)})
	const pieces, pages, profile = 13, 6, 13
	require.LessOrEqual(t, d.double.Requests(), 2*len(one.Workouts)+pieces+pages+profile)
}

// A double has data of every kind that its connector reads.
func TestDouble_hasDataOfEveryCollectionItsConnectorReads(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		t.Run(name, func(t *testing.T) {
			one := double.NewPerson(3, noon, 20)
			d := deploy(t, providers[name], double.Options{People: []*double.Person{one}})
			g := d.signIn(one)
			for _, kind := range d.connector.Collections() {
				p, err := d.connector.Probe(t.Context(), kind, linking.PullRequest{
					Secret: g.Secret, ExternalUserID: &g.ExternalUserID, From: noon.AddDate(0, 0, -20), To: noon,
				})
				require.NoError(t, err, kind)
				require.Positive(t, p.Items, kind)
			}
		})
	}
}

// receive stores the workouts of an item.
func (d *deployment) receive(health *healthdata.Service, u healthlab.UserID, item *linking.PullItem) healthdata.Counts {
	d.t.Helper()
	up := healthdata.Upload{Provider: d.provider.record.Slug, Source: item.Source, Device: item.Device, TimeZone: item.TimeZone}
	got, err := health.ReceiveSummaries(d.t.Context(), team, u, "workouts", []healthdata.SummaryPart{{Upload: up, Items: item.Summaries}})
	require.NoError(d.t, err)
	require.Empty(d.t, got[0].Refusals)
	return got[0].Counts
}

// A recording comes with its workout as the resource workouts has it: else each would revise the
// other.
func TestStream_itsWorkoutEqualsThatOfTheWorkoutsResource(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		p := providers[name]
		if !p.streams() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			one := double.NewPerson(3, noon, 20)
			d := deploy(t, p, double.Options{People: []*double.Person{one}})
			u := d.link(one)
			g := d.signIn(one)
			list, err := healthdata.NewProviders([]healthdata.Provider{p.record})
			require.NoError(t, err)
			health, err := healthdata.New(d.store.Users(), d.store.Data(), list, &healthdata.Options{
				Now: d.now, Environment: healthlab.Production, Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) {
					return healthdata.TeamSettings{ProviderRawData: true}, nil
				},
			})
			require.NoError(t, err)
			workouts := map[string]linking.PullItem{}
			recorded := 0
			for _, resource := range []string{"workouts", "workout_stream"} {
				r := linking.PullRequest{Secret: g.Secret, ExternalUserID: &g.ExternalUserID, Resource: resource, From: noon.AddDate(0, 0, -20), To: noon}
				for more := true; more; more = r.Cursor != "" {
					page, err := d.connector.Pull(t.Context(), r)
					require.NoError(t, err)
					for _, item := range page.Items {
						for _, s := range item.Summaries {
							w := *s.(*healthdata.Workout)
							w.Raw = nil
							only := linking.PullItem{Owner: item.Owner, Source: item.Source, Device: item.Device, TimeZone: item.TimeZone, Summaries: []healthdata.Summary{&w}}
							if item.Stream == nil {
								workouts[w.ExternalID] = only
								continue
							}
							recorded++
							require.Equal(t, workouts[w.ExternalID], only)
						}
						counts := d.receive(health, u, &item)
						require.Zero(t, counts.Changed)
						require.Equal(t, item.Stream == nil, counts.Same == 0)
					}
					r.Cursor = page.Next
				}
			}
			require.Positive(t, recorded)
		})
	}
}
