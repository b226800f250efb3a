package healthdata_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

var ctx = context.Background()

func (w *fixture) delete(u healthdata.User) {
	w.Helper()
	require.NoError(w, w.Deletions().Delete(w.Context(), team, u.ID))
}

func TestDeleteUser_makesEveryReadNotFound(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	w.delete(u)

	_, err := w.User(t.Context(), team, u.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = w.ResolveUser(t.Context(), team, "ann")
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = w.PatchUser(t.Context(), team, u.ID, healthdata.UserPatch{ClientUserID: new("bob")})
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = w.PatchUser(t.Context(), team, u.ID, healthdata.UserPatch{})
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.ErrorIs(t, err, healthlab.NotFound)
	require.ErrorIs(t, w.Deletions().Delete(t.Context(), team, u.ID), healthlab.NotFound)
	page, err := w.Users(t.Context(), team, 0, 0)
	require.NoError(t, err)
	require.Zero(t, page.Total)
	found, err := w.SearchUsers(t.Context(), team, "ann")
	require.NoError(t, err)
	require.Empty(t, found)
	m, err := w.TeamMetrics(t.Context(), team)
	require.NoError(t, err)
	require.Zero(t, m.Users)
	require.ErrorIs(t, w.Deletions().Delete(t.Context(), team, healthlab.UserID{UUID: uuid.New()}), healthlab.NotFound)
}

func TestUsersDeletedSince_listsDeletedUsersUntilErased(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	w.create("live")
	first, second := w.create("ann"), w.create("bob")
	w.delete(first)
	w.delete(second)
	all, err := w.Deletions().Since(t.Context(), team, time.Time{})
	require.NoError(t, err)
	require.ElementsMatch(t, []healthlab.UserID{first.ID, second.ID}, all)
	all, err = w.Deletions().Since(t.Context(), team, time.Now().AddDate(100, 0, 0))
	require.NoError(t, err)
	require.Empty(t, all)
	require.NoError(t, w.Deletions().Erase(t.Context(), team, first.ID))
	all, err = w.Deletions().Since(t.Context(), team, time.Time{})
	require.NoError(t, err)
	require.Equal(t, []healthlab.UserID{second.ID}, all)
}

func TestUndoDelete_restoresTheUserWithoutConnections(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	_, err := w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)
	for _, who := range []healthdata.DeletedUser{{User: u.ID}, {ClientUserID: "ann"}} {
		_, err = w.Deletions().Undo(t.Context(), team, who)
		require.ErrorIs(t, err, healthlab.NotFound, "it is live")

		w.delete(u)
		w.pass(healthdata.GracePeriod - time.Microsecond)
		got, err := w.Deletions().Undo(t.Context(), team, who)
		require.NoError(t, err)
		require.Equal(t, u.ID, got.ID)
		require.Equal(t, "ann", got.ClientUserID)
		require.Equal(t, []healthdata.ConnectedSource{}, got.ConnectedSources)
		again, err := w.User(t.Context(), team, u.ID)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestUndoDelete_requiresExactlyOneID(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	w.delete(u)
	for _, who := range []healthdata.DeletedUser{{}, {User: u.ID, ClientUserID: "ann"}} {
		_, err := w.Deletions().Undo(t.Context(), team, who)
		require.Equal(t, []string{"user_id:exactly_one"}, codes(t, err))
	}
	for _, who := range []healthdata.DeletedUser{
		{User: healthlab.UserID{UUID: uuid.New()}}, {ClientUserID: "bob"}, {ClientUserID: "Ann"}, {ClientUserID: "ann\x00"},
	} {
		_, err := w.Deletions().Undo(t.Context(), team, who)
		require.ErrorIs(t, err, healthlab.NotFound)
	}
	_, err := w.Deletions().Undo(t.Context(), healthlab.TeamID{UUID: uuid.New()}, healthdata.DeletedUser{User: u.ID})
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestUndoDelete_afterTheGracePeriodIsNotFound(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	w.delete(u)
	w.pass(healthdata.GracePeriod)
	for _, who := range []healthdata.DeletedUser{{User: u.ID}, {ClientUserID: "ann"}} {
		_, err := w.Deletions().Undo(t.Context(), team, who)
		require.ErrorIs(t, err, healthlab.NotFound)
	}
}

func TestUndoDelete_isRefusedIfTheClientUserIDIsTaken(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	first := w.create("ann")
	w.delete(first)
	second := w.create("ann")
	for _, who := range []healthdata.DeletedUser{{User: first.ID}, {ClientUserID: "ann"}} {
		_, err := w.Deletions().Undo(t.Context(), team, who)
		requireRule(t, healthdata.RuleInvalidRequest, err)
	}

	w.pass(time.Hour)
	w.delete(second)
	got, err := w.Deletions().Undo(t.Context(), team, healthdata.DeletedUser{ClientUserID: "ann"})
	require.NoError(t, err)
	require.Equal(t, second.ID, got.ID, "the most recently deleted of several")
	_, err = w.Deletions().Undo(t.Context(), team, healthdata.DeletedUser{User: first.ID})
	requireRule(t, healthdata.RuleInvalidRequest, err)
}

func TestUndoDelete_isRefusedInAFullSandbox(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	w.delete(u)
	for i := range healthdata.SandboxUsers {
		w.create(fmt.Sprint("n", i))
	}
	_, err := w.Deletions().Undo(t.Context(), team, healthdata.DeletedUser{User: u.ID})
	require.NoError(t, err)
}

func TestRun_erasesUsersAfterTheGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		providers, err := healthdata.NewProviders([]healthdata.Provider{
			{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"},
		})
		require.NoError(t, err)
		s, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
		require.NoError(t, err)
		running, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Deletions().Run(running) }()

		add := func(name string) healthdata.User {
			u, err := s.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: name})
			require.NoError(t, err)
			return u
		}
		erased, restored, live := add("ann"), add("bob"), add("carl")
		require.NoError(t, s.Deletions().Delete(t.Context(), team, erased.ID))
		require.NoError(t, s.Deletions().Delete(t.Context(), team, restored.ID))

		time.Sleep(healthdata.GracePeriod - time.Nanosecond) // of the bubble's clock
		_, err = store.Users().Get(t.Context(), team, erased.ID)
		require.NoError(t, err, "kept to the last moment")
		_, err = s.Deletions().Undo(t.Context(), team, healthdata.DeletedUser{User: restored.ID})
		require.NoError(t, err)

		time.Sleep(time.Minute)
		_, err = store.Users().Get(t.Context(), team, erased.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		for _, u := range []healthdata.User{restored, live} {
			_, err = s.User(t.Context(), team, u.ID)
			require.NoError(t, err)
		}
		stop()
		require.NoError(t, <-done)
	})
}

func TestEraseDue_erasesOnlyAfterTheGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		providers, err := healthdata.NewProviders(nil)
		require.NoError(t, err)
		s, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
		require.NoError(t, err)
		u, err := s.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
		require.NoError(t, err)
		require.NoError(t, s.Deletions().Delete(t.Context(), team, u.ID))
		for _, want := range []int{0, 1, 0} {
			n, err := s.Deletions().EraseDue(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, n)
			time.Sleep(healthdata.GracePeriod)
		}
		_, err = store.Users().Get(t.Context(), team, u.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	})
}

// An erasure first deletes data outside of the store, and repeats that until it succeeds.
func TestErase_repeatsForgetCallsUntilTheySucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		providers, err := healthdata.NewProviders(nil)
		require.NoError(t, err)
		calls := 0
		s, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
			Environment: healthlab.Sandbox,
			Forget: []func(context.Context, healthlab.TeamID, healthlab.UserID) error{
				func(ctx context.Context, who healthlab.TeamID, user healthlab.UserID) error {
					calls++
					_, err := store.Users().Get(ctx, who, user)
					require.NoError(t, err, "the user is there until its files are gone")
					if calls < 3 {
						return healthlab.Unavailable
					}
					return nil
				},
			},
		})
		require.NoError(t, err)
		u, err := s.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
		require.NoError(t, err)
		require.NoError(t, s.Deletions().Delete(t.Context(), team, u.ID))
		running, stop := context.WithTimeout(t.Context(), healthdata.GracePeriod+24*time.Hour)
		defer stop()
		require.NoError(t, s.Deletions().Run(running))
		require.Equal(t, 3, calls)
		_, err = store.Users().Get(t.Context(), team, u.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	})
}

// From the first call of Forget the data outside of the store may be gone, so no Undo may restore the user.
func TestErase_cannotBeUndoneWhileItRuns(t *testing.T) {
	for name, deleted := range map[string]bool{"a live user": false, "a deleted user": true} {
		t.Run(name, func(t *testing.T) {
			var w *fixture
			fault, calls := error(healthlab.Unavailable), 0
			w = newFixture(t, healthdata.Options{
				Forget: []func(context.Context, healthlab.TeamID, healthlab.UserID) error{
					func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
						calls++
						_, err := w.Deletions().Undo(ctx, team, healthdata.DeletedUser{User: user})
						require.ErrorIs(t, err, healthlab.NotFound)
						return fault
					},
				},
			})
			u := w.create("ann")
			if deleted {
				w.delete(u)
				w.pass(time.Hour)
			}
			require.ErrorIs(t, w.Deletions().Erase(t.Context(), team, u.ID), healthlab.Unavailable)

			// The process ends here. Another one completes the erasure without a further wait.
			fault = nil
			n, err := w.Deletions().EraseDue(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, 2, calls)
			_, err = w.store.Users().Get(t.Context(), team, u.ID)
			require.ErrorIs(t, err, healthlab.NotFound)
		})
	}
}

// restoring is a store that restores a user before the second update of it.
type restoring struct {
	healthdata.Users
	updates int
}

func (r *restoring) Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, change func(*healthdata.User) ([]healthlab.Event, error)) (healthdata.User, error) {
	if r.updates++; r.updates == 2 {
		_, err := r.Users.Update(ctx, team, id, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = time.Time{}
			return nil, nil
		})
		if err != nil {
			return healthdata.User{}, err
		}
	}
	return r.Users.Update(ctx, team, id, change)
}

func TestErase_keepsAUserThatIsRestoredBeforeItForgets(t *testing.T) {
	store := memory.New(nil)
	providers, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	s, err := healthdata.New(&restoring{Users: store.Users()}, store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox,
		Forget: []func(context.Context, healthlab.TeamID, healthlab.UserID) error{
			func(context.Context, healthlab.TeamID, healthlab.UserID) error {
				t.Error("the data of a live user is deleted")
				return nil
			},
		},
	})
	require.NoError(t, err)
	u, err := s.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	require.ErrorIs(t, s.Deletions().Erase(t.Context(), team, u.ID), healthlab.Conflict)
	kept, err := s.User(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, u.ID, kept.ID)
}

// unsure is a store whose Erase says what a test wants: what a claim finds when it
// comes can be other than what it left.
type unsure struct {
	healthdata.Users
	err error
}

func (u *unsure) Erase(context.Context, healthlab.TeamID, healthlab.UserID) error { return u.err }

func TestErase_ignoresRestoredUsersAndLogsStoreErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		logs string
	}{
		{"gone already", healthlab.NotFound, ""},
		{"back to life", healthlab.Precondition, ""},
		{"a store in trouble", healthlab.Unavailable, "level=WARN msg=\"job failed\" work=erasures job.team=TEAM job.user=USER kind=unavailable cause=\"erase user: unavailable\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(nil)
				var logs bytes.Buffer
				providers, err := healthdata.NewProviders(nil)
				require.NoError(t, err)
				s, err := healthdata.New(&unsure{store.Users(), tt.err}, store.Data(), providers, &healthdata.Options{
					Environment: healthlab.Sandbox,
					Log: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{
						ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
							if a.Key == slog.TimeKey {
								return slog.Attr{}
							}
							return a
						},
					})),
				})
				require.NoError(t, err)
				u, err := s.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
				require.NoError(t, err)
				require.NoError(t, s.Deletions().Delete(t.Context(), team, u.ID))
				running, stop := context.WithTimeout(t.Context(), healthdata.GracePeriod+time.Minute)
				defer stop()
				require.NoError(t, s.Deletions().Run(running))
				want := strings.NewReplacer("TEAM", team.String(), "USER", u.ID.String()).Replace(tt.logs)
				require.Equal(t, want, logs.String())
			})
		})
	}
}
