package healthdatatest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook"
)

// brokenUserStores are stores that break one promise each.
var brokenUserStores = []conformance.Broken{
	{Name: "sees other teams' users", Suite: spoiltUsers(seesOtherTeams), Subtest: "Get/NotFound"},
	{Name: "edits other teams' users", Suite: spoiltUsers(editsOtherTeams), Subtest: "Update/NotFound"},
	{Name: "keeps the caller's pointers", Suite: spoiltUsers(keepsPointers), Subtest: "Aliasing/Insert"},
	{Name: "hands out its own pointers", Suite: spoiltUsers(keepsPointers), Subtest: "Aliasing/Get"},
	{Name: "forgets events", Suite: spoiltUsers(forgetsEvents), Subtest: "Events/Written"},
	{Name: "writes events before the user", Suite: spoiltUsers(writesEventsFirst), Subtest: "Events/AllOrNothing"},
	{Name: "numbers events by team", Suite: spoiltUsers(numbersAllEvents), Subtest: "Events/Seq"},
	{Name: "loses updates", Suite: spoiltUsers(losesUpdates), Subtest: "Update/NoLostUpdates"},
	{Name: "hides the error of change", Suite: spoiltUsers(hidesErrors), Subtest: "Update/ErrorOfChange"},
	{Name: "never counts revisions", Suite: spoiltUsers(keepsRevision), Subtest: "Update/EveryField"},
	{Name: "drops the scopes", Suite: spoiltUsers(dropsScopes), Subtest: "Insert/EveryField"},
	{Name: "answers in local time", Suite: spoiltUsers(answersInLocalTime), Subtest: "Insert/Canonical"},
	{Name: "cuts NUL out", Suite: spoiltUsers(cutsNUL), Subtest: "Insert/Refused"},
	{Name: "cuts NUL out of queries", Suite: spoiltUsers(cutsNULOfQueries), Subtest: "List/Refused"},
	{Name: "goes on without its caller", Suite: spoiltUsers(ignoresContext), Subtest: "Context/Ended"},
	{Name: "folds the case of client user ids", Suite: spoiltUsers(foldsCase), Subtest: "ClientUserID/ByteForByte"},
	{Name: "keeps client user ids of the dead", Suite: spoiltUsers(reservesForDeleted), Subtest: "ClientUserID/OfADeletedUser"},
	{Name: "takes a client user id twice", Suite: spoiltUsers(takesNamesTwice), Subtest: "ClientUserID/Race"},
	{Name: "tells the limit first", Suite: spoiltUsers(limitFirst), Subtest: "ClientUserID/Taken"},
	{Name: "counts deleted users to the limit", Suite: spoiltUsers(countsDeleted), Subtest: "Limit/Reached"},
	{Name: "lets two through the last door", Suite: spoiltUsers(racesForTheLimit), Subtest: "Limit/Race"},
	{Name: "restores whoever asks", Suite: spoiltUsers(restoresAnyone), Subtest: "Update/Restore"},
	{Name: "lists the newest first", Suite: spoiltUsers(newestFirst), Subtest: "List/Order"},
	{Name: "counts the page", Suite: spoiltUsers(countsThePage), Subtest: "List/Pages"},
	{Name: "lists everything by default", Suite: spoiltUsers(listsAll), Subtest: "List/DefaultLimit"},
	{Name: "takes a prefix for a pattern", Suite: spoiltUsers(prefixIsPattern), Subtest: "List/Prefix"},
	{Name: "compares prefixes byte for byte", Suite: spoiltUsers(prefixIsExact), Subtest: "List/Prefix"},
	{Name: "lists the deleted from the first on", Suite: spoiltUsers(oldestDeletedFirst), Subtest: "List/Deleted"},
	{Name: "counts sources that were removed", Suite: spoiltUsers(countsRemoved), Subtest: "Metrics/Counts"},
	{Name: "claims what is not due", Suite: spoiltUsers(claimsEarly), Subtest: "Erasures/Due"},
	{Name: "claims a moment late", Suite: spoiltUsers(claimsLate), Subtest: "Erasures/Due"},
	{Name: "claims without a lease", Suite: spoiltUsers(claimsWithoutLease), Subtest: "Erasures/Lease"},
	{Name: "erases the living", Suite: spoiltUsers(erasesTheLiving), Subtest: "Erase/Live"},
	{Name: "keeps the events of the erased", Suite: spoiltUsers(keepsEvents), Subtest: "Erase/Everything"},
	{Name: "keeps the events of the deleted", Suite: spoiltUsers(keepsEvents), Subtest: "Delete/NoEvents"},
	{Name: "keeps the data of the erased", Suite: spoiltUsers(keepsData), Subtest: "Erase/Data"},
	{Name: "erases namesakes", Suite: spoiltUsers(erasesNamesakes), Subtest: "Erase/NothingElse"},
}

// spoiltUsers returns the suite over stores that were broken in one way.
func spoiltUsers(how func(*brokenUsers)) func(*testing.T) {
	return func(t *testing.T) {
		healthdatatest.RunUsers(t, func(testing.TB) healthdatatest.UsersHarness {
			store := memory.New(nil)
			b := &brokenUsers{overriddenUsers: overriddenUsers{Users: store.Users()}, overriddenLog: overriddenLog{Log: store.WebhookLog()}, data: store.Data()}
			how(b)
			return healthdatatest.UsersHarness{Users: b, Messages: b, Data: b.data}
		})
	}
}

type change = func(*healthdata.User) ([]healthlab.Event, error)

// brokenUsers is a store with some of its methods replaced.
type brokenUsers struct {
	overriddenUsers
	overriddenLog
	data healthdata.Data
}

// teamOf remembers whose each inserted user is.
func teamOf(b *brokenUsers) func(healthlab.UserID) healthlab.TeamID {
	teams := map[healthlab.UserID]healthlab.TeamID{}
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		teams[u.ID] = u.Team
		return b.Users.Insert(ctx, u, limit)
	}
	return func(id healthlab.UserID) healthlab.TeamID { return teams[id] }
}

func seesOtherTeams(b *brokenUsers) {
	team := teamOf(b)
	b.get = func(ctx context.Context, _ healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
		return b.Users.Get(ctx, team(id), id)
	}
}

func editsOtherTeams(b *brokenUsers) {
	team := teamOf(b)
	b.update = func(ctx context.Context, _ healthlab.TeamID, id healthlab.UserID, c change) (healthdata.User, error) {
		return b.Users.Update(ctx, team(id), id, c)
	}
}

func keepsPointers(b *brokenUsers) {
	kept := map[healthlab.UserID]healthdata.User{}
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		kept[u.ID] = u
		return b.Users.Insert(ctx, u, limit)
	}
	b.get = func(_ context.Context, _ healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
		return kept[id], nil
	}
}

func forgetsEvents(b *brokenUsers) {
	b.update = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, c change) (healthdata.User, error) {
		return b.Users.Update(ctx, team, id, func(u *healthdata.User) ([]healthlab.Event, error) {
			_, err := c(u)
			return nil, err
		})
	}
}

func writesEventsFirst(b *brokenUsers) {
	b.update = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, c change) (healthdata.User, error) {
		var events []healthlab.Event
		u, err := b.Users.Update(ctx, team, id, func(u *healthdata.User) (_ []healthlab.Event, err error) {
			events, err = c(u)
			return nil, err
		})
		for _, e := range events {
			if err == nil {
				u, err = b.Users.Update(ctx, team, id, func(*healthdata.User) ([]healthlab.Event, error) {
					return []healthlab.Event{e}, nil
				})
			}
		}
		return u, err
	}
}

func numbersAllEvents(b *brokenUsers) {
	n := int64(0)
	b.message = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (webhook.Message, error) {
		m, err := b.Log.Message(ctx, team, id)
		n++
		m.Seq = n
		return m, err
	}
}

func losesUpdates(b *brokenUsers) {
	b.update = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, c change) (healthdata.User, error) {
		u, err := b.Users.Get(ctx, team, id)
		if err != nil {
			return u, err
		}
		events, err := c(&u)
		if err != nil {
			return u, err
		}
		conformance.Pause()
		return b.Users.Update(ctx, team, id, func(to *healthdata.User) ([]healthlab.Event, error) {
			*to = u
			return events, nil
		})
	}
}

func hidesErrors(b *brokenUsers) {
	b.update = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, c change) (healthdata.User, error) {
		u, err := b.Users.Update(ctx, team, id, c)
		if err != nil {
			err = errors.New("update failed")
		}
		return u, err
	}
}

func keepsRevision(b *brokenUsers) {
	b.update = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, c change) (healthdata.User, error) {
		u, err := b.Users.Update(ctx, team, id, c)
		u.Revision = 1
		return u, err
	}
}

func dropsScopes(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		u.Connections = slices.Clone(u.Connections)
		for i := range u.Connections {
			u.Connections[i].Scopes = nil
		}
		return b.Users.Insert(ctx, u, limit)
	}
}

func answersInLocalTime(b *brokenUsers) {
	b.get = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
		u, err := b.Users.Get(ctx, team, id)
		u.CreatedOn.Time = u.CreatedOn.In(time.FixedZone("here", 3600))
		return u, err
	}
}

func cutsNUL(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		u.ClientUserID = strings.ReplaceAll(u.ClientUserID, "\x00", "")
		return b.Users.Insert(ctx, u, limit)
	}
}

func cutsNULOfQueries(b *brokenUsers) {
	b.list = func(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
		q.Prefix = strings.ReplaceAll(q.Prefix, "\x00", "")
		return b.Users.List(ctx, q)
	}
}

func ignoresContext(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		return b.Users.Insert(context.WithoutCancel(ctx), u, limit)
	}
}

func foldsCase(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		u.ClientUserID = strings.ToLower(u.ClientUserID)
		return b.Users.Insert(ctx, u, limit)
	}
}

// findBy returns the user of a team with a client user id, deleted or not.
func findBy(ctx context.Context, b *brokenUsers, u healthdata.User, deleted bool) *healthdata.User {
	page, err := b.Users.List(ctx, healthdata.UserQuery{Team: u.Team, ClientUserID: u.ClientUserID, Deleted: deleted})
	if err != nil || len(page.Users) == 0 {
		return nil
	}
	return &page.Users[0]
}

func reservesForDeleted(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		if old := findBy(ctx, b, u, true); old != nil {
			return &healthdata.ClientUserIDError{User: old.ID, CreatedOn: old.CreatedOn}
		}
		return b.Users.Insert(ctx, u, limit)
	}
}

func takesNamesTwice(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		err := b.Users.Insert(ctx, u, limit)
		if errors.Is(err, healthlab.Conflict) {
			u.ClientUserID += " again"
			return b.Users.Insert(ctx, u, limit)
		}
		return err
	}
}

func limitFirst(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		if limit > 0 {
			if page, err := b.Users.List(ctx, healthdata.UserQuery{Team: u.Team}); err == nil && page.Total >= limit {
				return healthlab.Exhausted
			}
		}
		return b.Users.Insert(ctx, u, limit)
	}
}

func countsDeleted(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		page, err := b.Users.List(ctx, healthdata.UserQuery{Team: u.Team, Deleted: true})
		if err != nil {
			return err
		}
		if limit > 0 && page.Total > 0 {
			limit = max(limit-page.Total, 1)
		}
		return b.Users.Insert(ctx, u, limit)
	}
}

func racesForTheLimit(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		page, err := b.Users.List(ctx, healthdata.UserQuery{Team: u.Team})
		switch {
		case err != nil:
			return err
		case limit > 0 && page.Total >= limit:
			return healthlab.Exhausted
		}
		conformance.Pause()
		return b.Users.Insert(ctx, u, 0)
	}
}

func restoresAnyone(b *brokenUsers) {
	b.update = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, c change) (healthdata.User, error) {
		u, err := b.Users.Update(ctx, team, id, c)
		if errors.Is(err, healthlab.Conflict) {
			return u, nil
		}
		return u, err
	}
}

func newestFirst(b *brokenUsers) {
	b.list = func(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
		page, err := b.Users.List(ctx, q)
		slices.Reverse(page.Users)
		return page, err
	}
}

func countsThePage(b *brokenUsers) {
	b.list = func(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
		page, err := b.Users.List(ctx, q)
		page.Total = len(page.Users)
		return page, err
	}
}

func listsAll(b *brokenUsers) {
	b.list = func(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
		if q.Limit == 0 {
			q.Limit = 1_000_000
		}
		return b.Users.List(ctx, q)
	}
}

func prefixIsPattern(b *brokenUsers) {
	b.list = func(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
		q.Prefix = strings.TrimRight(q.Prefix, "%")
		return b.Users.List(ctx, q)
	}
}

func prefixIsExact(b *brokenUsers) {
	b.list = func(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
		page, err := b.Users.List(ctx, q)
		page.Users = slices.DeleteFunc(page.Users, func(u healthdata.User) bool {
			return !strings.HasPrefix(u.ClientUserID, q.Prefix) && !strings.HasPrefix(u.ID.String(), q.Prefix)
		})
		return page, err
	}
}

func oldestDeletedFirst(b *brokenUsers) {
	b.list = func(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
		page, err := b.Users.List(ctx, q)
		if q.Deleted {
			slices.Reverse(page.Users)
		}
		return page, err
	}
}

func countsRemoved(b *brokenUsers) {
	b.insert = func(ctx context.Context, u healthdata.User, limit int) error {
		for i := range u.Connections {
			if c := &u.Connections[i]; c.Status == healthdata.Deregistered {
				c.Status = healthdata.Connected
			}
		}
		return b.Users.Insert(ctx, u, limit)
	}
}

func claimsEarly(b *brokenUsers) {
	b.claimErasures = func(ctx context.Context, before time.Time, n int, lease time.Duration) ([]healthdata.UserRef, error) {
		return b.Users.ClaimErasures(ctx, before.Add(time.Microsecond), n, lease)
	}
}

func claimsLate(b *brokenUsers) {
	b.claimErasures = func(ctx context.Context, before time.Time, n int, lease time.Duration) ([]healthdata.UserRef, error) {
		return b.Users.ClaimErasures(ctx, before.Add(-time.Microsecond), n, lease)
	}
}

func claimsWithoutLease(b *brokenUsers) {
	b.claimErasures = func(ctx context.Context, before time.Time, n int, _ time.Duration) ([]healthdata.UserRef, error) {
		return b.Users.ClaimErasures(ctx, before, n, 0)
	}
}

func erasesTheLiving(b *brokenUsers) {
	b.erase = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
		if _, err := b.Users.Update(ctx, team, id, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = time.Unix(0, 0)
			return nil, nil
		}); err != nil {
			return err
		}
		return b.Users.Erase(ctx, team, id)
	}
}

func keepsEvents(b *brokenUsers) {
	kept := map[uuid.UUID]webhook.Message{}
	b.message = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (webhook.Message, error) {
		m, err := b.Log.Message(ctx, team, id)
		if old, ok := kept[id]; ok && errors.Is(err, healthlab.NotFound) {
			return old, nil
		}
		kept[id] = m
		return m, err
	}
}

func keepsData(b *brokenUsers) { b.data = &hoard{Data: b.data} }

type hoard struct{ healthdata.Data }

func (h *hoard) Find(ctx context.Context, team healthlab.TeamID, resource string, id uuid.UUID,
) (healthlab.UserID, healthdata.Record, error) {
	user, r, err := h.Data.Find(ctx, team, resource, id)
	if errors.Is(err, healthlab.NotFound) {
		return user, r, nil
	}
	return user, r, err
}

func erasesNamesakes(b *brokenUsers) {
	b.erase = func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
		u, err := b.Users.Get(ctx, team, id)
		if err != nil {
			return err
		}
		if heir := findBy(ctx, b, u, false); heir != nil {
			if err := b.Users.Erase(ctx, team, id); err != nil {
				return err
			}
			erasesTheLiving(b)
			return b.erase(ctx, team, heir.ID)
		}
		return b.Users.Erase(ctx, team, id)
	}
}
