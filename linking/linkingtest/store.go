package linkingtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
)

// StoreHarness is a fresh, empty store for the suite of linking. All interfaces are of the same store.
type StoreHarness struct {
	// Linking is the interface under test.
	Linking linking.Store
	// Credentials is the second interface under test. Second is the same store, as another process opens it.
	Credentials, Second linking.CredentialStore
	// Users is the store of the users.
	Users healthdata.Users
	// Data is required by healthdata.Service; the suite writes no data.
	Data healthdata.Data
	// Messages lists the events that were written.
	Messages healthdatatest.Messages
	// SetClock sets the store's clock to an instant, at which it stops. RunCredentialStore and
	// RunCredentialRefresh need it.
	SetClock func(now time.Time)
}

// RunStore runs the contract of [linking.Store]. newStore returns a fresh, empty store
// and registers its own cleanup on t.
func RunStore(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	for _, group := range []struct {
		name  string
		cases map[string]func(*testing.T, StoreHarness)
	}{
		{"Code", linkCodeCases}, {"Session", linkSessionCases}, {"Complete", linkCompleteCases},
		{"Credential", linkCredentialCases}, {"Context", linkContextCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for name, run := range group.cases {
				t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
			}
		})
	}
}

// noon is the instant around which the fixtures are. It is near the present, because a store deletes expired
// rows by its own clock.
var noon = time.Now().UTC().Truncate(time.Second).Add(123456 * time.Microsecond)

// AddUser adds a live user without connections.
func (h StoreHarness) AddUser(t *testing.T, team, name string) healthlab.UserID {
	t.Helper()
	id := conformance.User(name)
	require.NoError(t, h.Users.Insert(t.Context(), healthdata.User{
		ID: id, Team: conformance.Team(team), ClientUserID: name, CreatedOn: healthlab.At(noon),
		FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: healthlab.At(noon)},
	}, 0))
	return id
}

func linkCode(team, user, text string) linking.Code {
	return linking.Code{
		Text: text, Team: conformance.Team(team), User: conformance.User(user), CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
}

// linkSession returns a link session in which every field is set.
func linkSession(team, user, name string) linking.Session {
	return linking.Session{
		ID: linking.SessionID{UUID: conformance.Named("session " + name)}, Team: conformance.Team(team), User: conformance.User(user),
		Token: linking.TokenHash{1, 2, 255}, State: linking.StateAwaitingMFA,
		Options: linking.NewToken{
			User: conformance.User(user), Provider: "acme_scale", RedirectURL: "myapp://link?x=1", FilterOnProviders: []string{"acme_scale", "acme_band"},
			OnError: "redirect", OnClose: "redirect",
		},
		Provider: "acme_scale", Step: 3, Pending: healthlab.Sealed{KeyID: "k1", Box: []byte{0, 1, 255}},
		Challenge: linking.Challenge{Method: "sms", Hint: "ends in 42"}, LastError: linking.IncorrectMFACode,
		Attempts:  []linking.Attempt{{At: noon, Provider: "acme_scale", Error: linking.ProviderAPIError, Until: noon}},
		CreatedAt: noon, ExpiresAt: noon.Add(time.Hour), Revision: 1,
	}
}

// redeemCode makes a try at a link code at an instant with Store.TryCode and [linking.CodeAttempt.Redeem], and returns
// the result of Redeem.
func redeemCode(t *testing.T, s linking.Store, team, client, text string, at time.Time) (linking.Code, error) {
	t.Helper()
	var got linking.Code
	var verdict error
	err := s.TryCode(t.Context(), conformance.Team(team), named32(client), text, func(x *linking.CodeAttempt) { got, verdict = x.Redeem(at) })
	require.NoError(t, err)
	return got, verdict
}

func named32(name string) (out [32]byte) {
	copy(out[:], name)
	return out
}

var linkCodeCases = map[string]func(*testing.T, StoreHarness){
	"WorksOnce": func(t *testing.T, h StoreHarness) {
		user := h.AddUser(t, "a", "ann")
		require.NoError(t, h.Linking.InsertCode(t.Context(), linkCode("a", "ann", "skus00000001")))
		got, err := redeemCode(t, h.Linking, "a", "phone", "skus00000001", noon.Add(time.Minute))
		require.NoError(t, err)
		require.Equal(t, user, got.User)
		require.WithinDuration(t, noon, got.CreatedAt, 0)
		require.WithinDuration(t, noon.Add(time.Hour), got.ExpiresAt, 0)
		_, err = redeemCode(t, h.Linking, "a", "phone", "skus00000001", noon.Add(time.Minute))
		requireRule(t, linking.RuleCodeConsumed, err)
	},
	"RacingTriesGetItOnce": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		require.NoError(t, h.Linking.InsertCode(t.Context(), linkCode("a", "ann", "skus00000001")))
		require.Equal(t, 1, conformance.Successes(conformance.Together(8, func(int) error {
			var verdict error
			err := h.Linking.TryCode(t.Context(), conformance.Team("a"), named32("phone"), "skus00000001",
				func(x *linking.CodeAttempt) { _, verdict = x.Redeem(noon) })
			return errors.Join(err, verdict)
		})))
	},
	"TakenUntilItExpires": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		h.AddUser(t, "b", "bob")
		c := linkCode("a", "ann", "skus00000001")
		require.NoError(t, h.Linking.InsertCode(t.Context(), c))
		other := linkCode("b", "bob", "skus00000001")
		require.ErrorIs(t, h.Linking.InsertCode(t.Context(), other), healthlab.Conflict, "another team, too")
		other.CreatedAt, other.ExpiresAt = c.ExpiresAt, c.ExpiresAt.Add(time.Hour)
		require.NoError(t, h.Linking.InsertCode(t.Context(), other), "it has expired")
		_, err := redeemCode(t, h.Linking, "a", "phone", "skus00000001", noon)
		requireRule(t, linking.RuleCodeInvalid, err)
	},
	"OtherTeam": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		require.NoError(t, h.Linking.InsertCode(t.Context(), linkCode("a", "ann", "skus00000001")))
		_, err := redeemCode(t, h.Linking, "b", "phone", "skus00000001", noon)
		requireRule(t, linking.RuleCodeInvalid, err)
		_, err = redeemCode(t, h.Linking, "a", "phone", "skus00000001", noon)
		require.NoError(t, err)
	},
	"WithoutATeam": func(t *testing.T, h StoreHarness) {
		user := h.AddUser(t, "a", "ann")
		open := func(client, text string) (got linking.Code, before linking.CodeAttempt, verdict error) {
			require.NoError(t, h.Linking.TryCode(t.Context(), healthlab.TeamID{}, named32(client), text, func(x *linking.CodeAttempt) {
				before = *x
				got, verdict = x.Redeem(noon)
			}))
			return got, before, verdict
		}
		for range 3 {
			_, _, err := open("phone", "skus00000000")
			requireRule(t, linking.RuleCodeInvalid, err)
		}
		_, err := redeemCode(t, h.Linking, "a", "phone", "skus00000000", noon)
		requireRule(t, linking.RuleCodeInvalid, err)
		require.NoError(t, h.Linking.InsertCode(t.Context(), linkCode("a", "ann", "skus00000001")))
		require.NoError(t, h.Linking.InsertCode(t.Context(), linkCode("a", "ann", "skus00000002")))
		_, _, err = open("phone", "skus00000000")
		requireRule(t, linking.RuleCodeInvalid, err)

		got, before, err := open("tablet", "skus00000001")
		require.NoError(t, err)
		require.Equal(t, conformance.Team("a"), got.Team)
		require.Equal(t, user, got.User)
		require.Zero(t, before.Wrong)
		require.EqualValues(t, 4, before.TeamWrong, "the tries of all clients without a team, and no others")
		require.EqualValues(t, 1, before.TeamFirst)
		require.EqualValues(t, 3, got.WrongBefore)
		require.EqualValues(t, 1, got.FirstBefore)
		_, _, err = open("tablet", "skus00000001")
		requireRule(t, linking.RuleCodeConsumed, err)
		_, err = redeemCode(t, h.Linking, "a", "tablet", "skus00000001", noon)
		requireRule(t, linking.RuleCodeConsumed, err)
		made, err := redeemCode(t, h.Linking, "a", "tablet", "skus00000002", noon)
		require.NoError(t, err)
		require.EqualValues(t, 1, made.WrongBefore, "the team's own count")
	},
	"RacingWithAndWithoutATeam": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		require.NoError(t, h.Linking.InsertCode(t.Context(), linkCode("a", "ann", "skus00000001")))
		require.Equal(t, 1, conformance.Successes(conformance.Together(8, func(i int) error {
			team := conformance.Team("a")
			if i%2 == 0 {
				team = healthlab.TeamID{}
			}
			var verdict error
			err := h.Linking.TryCode(t.Context(), team, named32("phone"), "skus00000001",
				func(x *linking.CodeAttempt) { _, verdict = x.Redeem(noon) })
			return errors.Join(err, verdict)
		})))
	},
	"CountsWrongTries": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		look := func(team, client string) (got linking.CodeAttempt) {
			require.NoError(t, h.Linking.TryCode(t.Context(), conformance.Team(team), named32(client), "x", func(x *linking.CodeAttempt) { got = *x }))
			return got
		}
		for i := range 3 {
			_, err := redeemCode(t, h.Linking, "a", "phone", "skus00000001", noon.Add(time.Duration(i)*time.Minute))
			requireRule(t, linking.RuleCodeInvalid, err)
		}
		got := look("a", "phone")
		require.WithinDuration(t, noon, got.Since, 0)
		require.Equal(t, 3, got.Wrong)
		require.EqualValues(t, 3, got.TeamWrong)
		require.EqualValues(t, 1, got.TeamFirst)
		require.Nil(t, got.Code)
		got = look("a", "tablet")
		require.Zero(t, got.Wrong)
		require.EqualValues(t, 3, got.TeamWrong)
		require.Zero(t, look("b", "phone"))
		c := linkCode("a", "ann", "skus00000001")
		c.WrongBefore, c.FirstBefore = 99, 98
		require.NoError(t, h.Linking.InsertCode(t.Context(), c))
		made, err := redeemCode(t, h.Linking, "a", "tablet", "skus00000001", noon)
		require.NoError(t, err)
		require.EqualValues(t, 3, made.WrongBefore)
		require.EqualValues(t, 1, made.FirstBefore)
	},
	"WrongTriesInHalves": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		attack := func(first, later int64) {
			require.NoError(t, h.Linking.TryCode(t.Context(), conformance.Team("a"), named32("attacker"), "x", func(x *linking.CodeAttempt) {
				x.TeamFirst += first
				x.TeamWrong += first + later
			}))
		}
		open := func(text string) {
			require.NoError(t, h.Linking.InsertCode(t.Context(), linkCode("a", "ann", text)))
		}
		const half = linking.MaxWrongPerCode / 2
		attack(5, 10)
		_, err := redeemCode(t, h.Linking, "a", "clumsy", "skus00000000", noon)
		requireRule(t, linking.RuleCodeInvalid, err)
		for _, text := range []string{"skus00000001", "skus00000002", "skus00000003", "skus00000004"} {
			open(text)
		}
		attack(half-1, half-1)
		_, err = redeemCode(t, h.Linking, "a", "clumsy", "skus00000001", noon)
		require.NoError(t, err)
		attack(0, 1)
		_, err = redeemCode(t, h.Linking, "a", "clumsy", "skus00000002", noon)
		requireRule(t, linking.RuleCodeInvalid, err)
		_, err = redeemCode(t, h.Linking, "a", "phone", "skus00000003", noon)
		require.NoError(t, err)
		attack(1, 0)
		_, err = redeemCode(t, h.Linking, "a", "phone", "skus00000004", noon)
		requireRule(t, linking.RuleCodeExpired, err)
		open("skus00000005")
		_, err = redeemCode(t, h.Linking, "a", "clumsy", "skus00000005", noon)
		require.NoError(t, err)
	},
	"Refused": func(t *testing.T, h StoreHarness) {
		for _, c := range []linking.Code{{}, linkCode("a", "ann", ""), linkCode("a", "ann", "a\x00"), {Text: "x", Team: conformance.Team("a")}} {
			require.ErrorIs(t, h.Linking.InsertCode(t.Context(), c), healthlab.Invalid)
		}
	},
	"ErasedWithItsUser": func(t *testing.T, h StoreHarness) {
		user := h.AddUser(t, "a", "ann")
		require.NoError(t, h.Linking.InsertCode(t.Context(), linkCode("a", "ann", "skus00000001")))
		require.NoError(t, h.Linking.InsertSession(t.Context(), linkSession("a", "ann", "1")))
		h.EraseUser(t, "a", user)
		_, err := redeemCode(t, h.Linking, "a", "phone", "skus00000001", noon)
		requireRule(t, linking.RuleCodeInvalid, err)
		_, err = h.Linking.Session(t.Context(), conformance.Team("a"), linkSession("a", "ann", "1").ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
}

// EraseUser deletes a user (healthdata.Users) and then erases the deleted user's data.
func (h StoreHarness) EraseUser(t *testing.T, team string, user healthlab.UserID) {
	t.Helper()
	_, err := h.Users.Update(t.Context(), conformance.Team(team), user, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = noon
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, h.Users.Erase(t.Context(), conformance.Team(team), user))
}

func requireRule(t *testing.T, name string, err error) {
	t.Helper()
	var rule *healthlab.RuleError
	require.ErrorAs(t, err, &rule)
	require.Equal(t, name, rule.Type)
}

var linkSessionCases = map[string]func(*testing.T, StoreHarness){
	"RoundTrip": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		want := linkSession("a", "ann", "1")
		given := want
		given.Revision = 9
		given.CreatedAt = want.CreatedAt.In(time.FixedZone("x", 3600))
		require.NoError(t, h.Linking.InsertSession(t.Context(), given))
		got, err := h.Linking.Session(t.Context(), want.Team, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
	},
	"Empty": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		full := linkSession("a", "ann", "1")
		want := linking.Session{
			ID: full.ID, Team: full.Team, User: full.User, State: linking.StateCreated, CreatedAt: full.CreatedAt, ExpiresAt: full.ExpiresAt, Revision: 1,
			Options: linking.NewToken{User: full.User},
		}
		require.NoError(t, h.Linking.InsertSession(t.Context(), want))
		got, err := h.Linking.Session(t.Context(), want.Team, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
	},
	"Duplicate": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		require.NoError(t, h.Linking.InsertSession(t.Context(), linkSession("a", "ann", "1")))
		require.ErrorIs(t, h.Linking.InsertSession(t.Context(), linkSession("a", "ann", "1")), healthlab.Conflict)
	},
	"Refused": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		nul := linkSession("a", "ann", "1")
		nul.Options.RedirectURL = "x\x00"
		nobody := linkSession("a", "ann", "1")
		nobody.User = healthlab.UserID{}
		for _, s := range []linking.Session{{}, nul, nobody} {
			require.ErrorIs(t, h.Linking.InsertSession(t.Context(), s), healthlab.Invalid)
		}
	},
	"OtherTeam": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		s := linkSession("a", "ann", "1")
		require.NoError(t, h.Linking.InsertSession(t.Context(), s))
		_, err := h.Linking.Session(t.Context(), conformance.Team("b"), s.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Linking.UpdateSession(t.Context(), conformance.Team("b"), s.ID, func(*linking.Session) error { return nil })
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"Aliasing": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		s := linkSession("a", "ann", "1")
		require.NoError(t, h.Linking.InsertSession(t.Context(), s))
		spoil := func(x linking.Session) {
			x.Pending.Box[0], x.Attempts[0].Provider, x.Options.FilterOnProviders[0] = 9, "spoilt", "spoilt"
		}
		spoil(s)
		got, err := h.Linking.Session(t.Context(), s.Team, s.ID)
		require.NoError(t, err)
		require.Equal(t, linkSession("a", "ann", "1"), got)
		spoil(got)
		got, err = h.Linking.Session(t.Context(), s.Team, s.ID)
		require.NoError(t, err)
		require.Equal(t, linkSession("a", "ann", "1"), got)
	},
	"UpdateKeepsItsOwn": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		s := linkSession("a", "ann", "1")
		require.NoError(t, h.Linking.InsertSession(t.Context(), s))
		got, err := h.Linking.UpdateSession(t.Context(), s.Team, s.ID, func(x *linking.Session) error {
			*x = linking.Session{State: linking.StateFailed, Provider: "acme_band"}
			return nil
		})
		require.NoError(t, err)
		want := linking.Session{
			ID: s.ID, Team: s.Team, User: s.User, Token: s.Token, CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt, Revision: 2,
			State: linking.StateFailed, Provider: "acme_band",
		}
		want.Options.User = got.Options.User // a store may set it from the session
		require.Equal(t, want, got)
	},
	"ErrorWritesNothing": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		s := linkSession("a", "ann", "1")
		require.NoError(t, h.Linking.InsertSession(t.Context(), s))
		own := errors.New("own")
		_, err := h.Linking.UpdateSession(t.Context(), s.Team, s.ID, func(x *linking.Session) error {
			x.State = linking.StateConnected
			return own
		})
		require.ErrorIs(t, err, own)
		got, err := h.Linking.Session(t.Context(), s.Team, s.ID)
		require.NoError(t, err)
		require.Equal(t, s, got)
	},
	"NoLostUpdates": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		s := linkSession("a", "ann", "1")
		require.NoError(t, h.Linking.InsertSession(t.Context(), s))
		conformance.Together(16, func(int) error {
			_, err := h.Linking.UpdateSession(t.Context(), s.Team, s.ID, func(x *linking.Session) error {
				x.Step++
				return nil
			})
			return err
		})
		got, err := h.Linking.Session(t.Context(), s.Team, s.ID)
		require.NoError(t, err)
		require.Equal(t, got.Revision-1, int64(got.Step-s.Step))
		require.Greater(t, got.Step, s.Step)
	},
}

var linkContextCases = map[string]func(*testing.T, StoreHarness){
	"Ended": func(t *testing.T, h StoreHarness) {
		h.AddUser(t, "a", "ann")
		s := linkSession("a", "ann", "1")
		require.NoError(t, h.Linking.InsertSession(t.Context(), s))
		ctx, stop := context.WithCancel(t.Context())
		stop()
		changed := false
		_, err := h.Linking.UpdateSession(ctx, s.Team, s.ID, func(*linking.Session) error { changed = true; return nil })
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Linking.Complete(ctx, h.success(s, "ext"))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, h.Linking.InsertCode(ctx, linkCode("a", "ann", "skus00000001")), context.Canceled)
		err = h.Linking.TryCode(ctx, s.Team, named32("p"), "x", func(*linking.CodeAttempt) { changed = true })
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, changed)
		got, err := h.Linking.Session(t.Context(), s.Team, s.ID)
		require.NoError(t, err)
		require.Equal(t, s, got)
	},
}

// success returns the completion of a session that connects the account external.
func (h StoreHarness) success(s linking.Session, external string) linking.Completion {
	return linking.Completion{
		Team: s.Team, Session: s.ID,
		Credential: linking.Credential{
			ID: uuid.New(), Team: s.Team, User: s.User, Provider: "acme_scale", Secret: healthlab.Sealed{KeyID: "k1", Box: []byte("box of " + external)},
			CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
		},
		Change: func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			if x.State == linking.StateConnected {
				return nil, healthlab.Precondition
			}
			x.State = linking.StateConnected
			connected(u, external)
			return []healthlab.Event{{
				ID: uuid.New(), Type: healthdata.EventConnectionCreated, Team: s.Team, User: s.User, At: noon,
				Key: healthdata.ConnectionKey(s.User, "acme_scale"), Data: []byte(`{"n":1}`),
			}}, nil
		},
	}
}

func connected(u *healthdata.User, external string) {
	u.Connections = []healthdata.Connection{{
		Provider: "acme_scale", Status: healthdata.Connected, CreatedOn: noon, ExternalUserID: &external,
	}}
}
