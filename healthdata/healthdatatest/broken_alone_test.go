package healthdatatest_test

import (
	"context"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// brokenUsersAlone are stores of users alone that break one promise each.
var brokenUsersAlone = []conformance.Broken{
	{Name: "sees other teams' users", Suite: usersAlone(seesOtherTeams), Subtest: "Get/NotFound"},
	{Name: "forgets events", Suite: usersAlone(forgetsEvents), Subtest: "Events/Written"},
	{Name: "cuts NUL out", Suite: usersAlone(cutsNUL), Subtest: "Insert/Refused"},
	{Name: "loses updates", Suite: usersAlone(losesUpdates), Subtest: "Update/NoLostUpdates"},
	{Name: "keeps the events of the erased", Suite: usersAlone(keepsEvents), Subtest: "Erase/Everything"},
	{Name: "erases the living", Suite: usersAlone(erasesTheLiving), Subtest: "Erase/Live"},
}

func usersAlone(how func(*brokenUsers)) func(*testing.T) {
	return func(t *testing.T) {
		healthdatatest.RunUsersAlone(t, func(testing.TB) healthdatatest.UsersAloneHarness {
			store := memory.New(nil)
			b := &brokenUsers{overriddenUsers: overriddenUsers{Users: store.Users()}, overriddenLog: overriddenLog{Log: store.WebhookLog()}, data: store.Data()}
			how(b)
			return healthdatatest.UsersAloneHarness{Users: b, Messages: b}
		})
	}
}

// brokenDataAlone are stores of health data alone that break one promise each.
var brokenDataAlone = []conformance.Broken{
	{Name: "puts into other teams", Suite: dataAlone(putsAnywhere), Subtest: "Put/NoSuchUser"},
	{Name: "drops the events of samples", Suite: dataAlone(dropsSampleEvents), Subtest: "Events/Seq"},
	{Name: "takes two records of one id", Suite: dataAlone(lastTwinWins), Subtest: "Put/Refused"},
	{Name: "loses samples", Suite: dataAlone(losesSamples), Subtest: "Merge/NoLostUpdates"},
	{Name: "refuses to write nothing", Suite: dataAlone(refusesNothing), Subtest: "Put/Nothing"},
	{Name: "does not hear of deletions", Suite: dataAlone(func(b *brokenData) { b.users.deaf = true }), Subtest: "Put/NoSuchUser"},
}

func refusesNothing(b *brokenData) {
	b.putRecords = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record, events putEvents) error {
		if len(records) == 0 {
			return healthlab.Invalid
		}
		return b.Data.PutRecords(ctx, team, user, records, events)
	}
}

func dataAlone(how func(*brokenData)) func(*testing.T) {
	return func(t *testing.T) {
		healthdatatest.RunDataAlone(t, func(testing.TB) healthdatatest.DataAloneHarness {
			store := memory.New(nil)
			b := &brokenData{overriddenData: overriddenData{Data: store.Data()}, users: &usersSeen{Users: store.Users(), teams: map[healthlab.UserID]healthlab.TeamID{}}}
			how(b)
			return healthdatatest.DataAloneHarness{
				Data: b, Messages: store.WebhookLog(),
				Add: func(ctx context.Context, u healthdata.User) error { return b.users.Insert(ctx, u, 0) },
				Delete: func(ctx context.Context, u healthdata.User) error {
					if b.users.deaf {
						return nil
					}
					_, err := b.users.Update(ctx, u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
						u.DeletedAt = u.CreatedOn.Time
						return nil, nil
					})
					return err
				},
			}
		})
	}
}

// The stores from which the broken ones are made pass the suites.
func TestBrokenStores_unbrokenBasePassesTheSuite(t *testing.T) {
	t.Run("Users", usersAlone(func(*brokenUsers) {}))
	t.Run("Data", dataAlone(func(*brokenData) {}))
}
