package accesslogtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// RunStore tests that s keeps the contract of [accesslog.Store]. s must be empty. All cases share s, each with
// teams of its own.
func RunStore(t *testing.T, s accesslog.Store) {
	for name, run := range conformance.Sorted(accessCases) {
		t.Run(name, func(t *testing.T) { run(accessT{t, s}) })
	}
}

// accessT is one case of the suite and the store that it tests.
type accessT struct {
	*testing.T
	store accesslog.Store
}

func access(team healthlab.TeamID, person healthlab.UserID) accesslog.Entry {
	return accesslog.Entry{
		Team: team, At: noon, Actor: "key:räv <&>", Person: person, Kind: "data", Operation: "read_sleep", Status: 200, Request: "r1", Address: "2001:db8::1",
	}
}

func signHead(h accesslog.Head) []byte { return []byte("signed " + h.Hash.String()) }

func newPersonID() healthlab.UserID { return healthlab.UserID{UUID: uuid.New()} }

func (t accessT) add(entries ...accesslog.Entry) {
	t.Helper()
	require.NoError(t, t.store.Append(t.Context(), entries, nil))
}

// seal appends the stored lines of a team (zero: of all teams) to the hash chains.
func (t accessT) seal(team healthlab.TeamID) {
	t.Helper()
	for {
		n, err := t.store.Seal(t.Context(), accesslog.SealQuery{Team: team, N: 1000}, signHead)
		require.NoError(t, err)
		if n < 1000 {
			return
		}
	}
}

// append stores entries and appends them to the hash chains of their teams.
func (t accessT) append(entries ...accesslog.Entry) {
	t.Helper()
	t.add(entries...)
	for i := range entries {
		t.seal(entries[i].Team)
	}
}

// unsealed returns how many stored lines of a team are not in the hash chain yet.
func (t accessT) unsealed(team healthlab.TeamID) int64 {
	t.Helper()
	of, err := t.store.Unsealed(t.Context(), team)
	require.NoError(t, err)
	all, err := t.store.Unsealed(t.Context(), healthlab.TeamID{})
	require.NoError(t, err)
	require.Equal(t, of[team], all[team])
	require.LessOrEqual(t, len(of), 1)
	return of[team]
}

func (t accessT) lines(q accesslog.Query) []accesslog.Line {
	t.Helper()
	list, err := t.store.Lines(t.Context(), q)
	require.NoError(t, err)
	return list
}

// chain returns all lines of a team, and fails unless each has the hash of the previous one.
func (t accessT) chain(team healthlab.TeamID) []accesslog.Line {
	t.Helper()
	var v accesslog.Verifier
	list := t.lines(accesslog.Query{Team: team, N: 10_000})
	for i := range list {
		require.NoError(t, v.Check(&list[i]))
	}
	return list
}

func (t accessT) anchors(team healthlab.TeamID) []accesslog.Anchor {
	t.Helper()
	list, err := t.store.Anchors(t.Context(), team)
	require.NoError(t, err)
	return list
}

var accessKey = ed25519.NewKeyFromSeed([]byte("0123456789abcdef0123456789abcdef"))

// anchor stores and returns a signed anchor of the last line of a team's chain.
func (t accessT) anchor(team healthlab.TeamID, at time.Time) accesslog.Anchor {
	t.Helper()
	list := t.chain(team)
	last := list[len(list)-1]
	a := accesslog.Sign(accesslog.Head{Team: team, Seq: last.Seq, Hash: last.Hash}, at, accessKey)
	require.NoError(t, t.store.AddAnchor(t.Context(), a))
	return a
}

// unanchored returns a team's head (last line) if the store lists it as not anchored; otherwise nil.
func (t accessT) unanchored(team healthlab.TeamID) *accesslog.Head {
	t.Helper()
	list, err := t.store.Unanchored(t.Context(), 10_000)
	require.NoError(t, err)
	for i := range list {
		if list[i].Team == team {
			return &list[i]
		}
	}
	return nil
}

var accessCases = map[string]func(t accessT){
	"RoundTrip": func(t accessT) {
		team, person := conformance.NewTeam(), newPersonID()
		want := access(team, person)
		given := want
		given.At = want.At.In(time.FixedZone("x", 3600)).Add(123 * time.Nanosecond)
		bare := accesslog.Entry{Team: team, At: noon}
		t.append(given, bare)
		t.append(want)
		got := t.chain(team)
		require.Len(t, got, 3)
		require.Equal(t, []accesslog.Entry{want, bare, want}, []accesslog.Entry{got[0].Entry, got[1].Entry, got[2].Entry})
		require.Zero(t, got[0].Prev)
		lines, _ := accesslog.Chain(accesslog.Head{}, []accesslog.Entry{given, bare, want})
		require.Equal(t, lines, got)
		t.append()
		require.Len(t, t.chain(team), 3)
	},
	"Teams": func(t accessT) {
		a, b, person := conformance.NewTeam(), conformance.NewTeam(), newPersonID()
		t.append(access(a, person), access(b, person), access(a, person))
		require.Len(t, t.chain(a), 2)
		require.Len(t, t.chain(b), 1)
		require.Len(t, t.lines(accesslog.Query{Team: b, Person: person, N: 9}), 1)
		require.Empty(t, t.lines(accesslog.Query{Team: conformance.NewTeam(), N: 9}))
	},
	"Pages": func(t accessT) {
		team, ann, bob := conformance.NewTeam(), newPersonID(), newPersonID()
		t.append(access(team, ann), access(team, bob), access(team, ann), access(team, ann))
		seqs := func(q accesslog.Query) (out []int64) {
			q.Team = team
			for _, l := range t.lines(q) {
				out = append(out, l.Seq)
			}
			return out
		}
		require.Equal(t, []int64{1, 2}, seqs(accesslog.Query{N: 2}))
		require.Equal(t, []int64{3, 4}, seqs(accesslog.Query{N: 9, After: 2}))
		require.Equal(t, []int64{1, 3}, seqs(accesslog.Query{N: 2, Person: ann}))
		require.Equal(t, []int64{4}, seqs(accesslog.Query{N: 2, Person: ann, After: 3}))
		require.Equal(t, []int64{2}, seqs(accesslog.Query{N: 9, Person: bob}))
		require.Empty(t, seqs(accesslog.Query{}))
	},
	"Concurrent": func(t accessT) {
		a, b, person := conformance.NewTeam(), conformance.NewTeam(), newPersonID()
		wins := conformance.Successes(conformance.Together(8, func(i int) error {
			first, second := a, b
			if i%2 == 0 {
				first, second = b, a
			}
			err := t.store.Append(t.Context(), []accesslog.Entry{access(first, person), access(second, person), access(first, person)}, nil)
			if err == nil {
				_, err = t.store.Seal(t.Context(), accesslog.SealQuery{N: 1000}, signHead)
			}
			return err
		}))
		require.Equal(t, 8, wins)
		t.seal(a)
		t.seal(b)
		require.Len(t, t.chain(a), 12)
		require.Len(t, t.chain(b), 12)
	},
	"Unsealed": func(t accessT) {
		team, other, person := conformance.NewTeam(), conformance.NewTeam(), newPersonID()
		entry := func(n int) accesslog.Entry {
			e := access(team, person)
			e.At = noon.Add(-time.Duration(n) * time.Hour) // lines are in the order of Append, not of At
			e.Status = n
			return e
		}
		stored := 0
		require.NoError(t, t.store.Append(t.Context(), []accesslog.Entry{entry(1), entry(2)}, func() { stored++ }))
		require.Equal(t, 1, stored)
		t.add(access(other, person), entry(3))
		require.EqualValues(t, 3, t.unsealed(team))
		require.EqualValues(t, 1, t.unsealed(other))
		require.Zero(t, t.unsealed(conformance.NewTeam()))
		require.Empty(t, t.lines(accesslog.Query{Team: team, N: 9}), "a line without a number")
		require.Empty(t, t.lines(accesslog.Query{Team: team, Person: person, N: 9}), "a line without a number")
		heads, err := t.store.Heads(t.Context(), accesslog.HeadQuery{Team: team, N: 9})
		require.NoError(t, err)
		require.Empty(t, heads)

		few, err := t.store.Seal(t.Context(), accesslog.SealQuery{Team: team}, signHead)
		require.NoError(t, err)
		require.Zero(t, few)
		n, err := t.store.Seal(t.Context(), accesslog.SealQuery{Team: team, N: 2}, signHead)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.EqualValues(t, 1, t.unsealed(team))
		require.EqualValues(t, 1, t.unsealed(other), "another team")
		t.add(entry(4))
		n, err = t.store.Seal(t.Context(), accesslog.SealQuery{Team: team, N: 9}, signHead)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Zero(t, t.unsealed(team))
		var statuses []int
		for _, l := range t.chain(team) {
			statuses = append(statuses, l.Status)
		}
		require.Equal(t, []int{1, 2, 3, 4}, statuses)
		t.seal(healthlab.TeamID{})
		require.Len(t, t.chain(other), 1)
		require.Zero(t, t.unsealed(other))
	},
	"Refused": func(t accessT) {
		team := conformance.NewTeam()
		for _, spoil := range []func(*accesslog.Entry){
			func(e *accesslog.Entry) { e.Team = healthlab.TeamID{} },
			func(e *accesslog.Entry) { e.Actor = "a\x00" },
			func(e *accesslog.Entry) { e.Kind = "a\xff" },
			func(e *accesslog.Entry) { e.Operation = "a\x00" },
			func(e *accesslog.Entry) { e.Request = "a\x00" },
			func(e *accesslog.Entry) { e.Address = strings.Repeat("\xff", 3) },
		} {
			bad := access(team, newPersonID())
			spoil(&bad)
			require.ErrorIs(t, t.store.Append(t.Context(), []accesslog.Entry{access(team, newPersonID()), bad}, nil), healthlab.Invalid)
		}
		require.Zero(t, t.unsealed(team))
		t.seal(team)
		require.Empty(t, t.chain(team), "all entries are added or none")
	},
	"Anchors": func(t accessT) {
		team, other := conformance.NewTeam(), conformance.NewTeam()
		require.ErrorIs(t, t.store.AddAnchor(t.Context(), accesslog.Sign(accesslog.Head{Team: team, Seq: 1}, noon, accessKey)), healthlab.NotFound)
		t.append(access(team, newPersonID()), access(team, newPersonID()), access(other, newPersonID()))
		lines := t.chain(team)
		require.Equal(t, &accesslog.Head{Team: team, Seq: 2, Hash: lines[1].Hash}, t.unanchored(team))
		first := t.anchor(team, noon.Add(123*time.Nanosecond))
		require.Nil(t, t.unanchored(team))
		require.NotNil(t, t.unanchored(other))
		again := first
		again.At = noon.Add(time.Hour)
		require.NoError(t, t.store.AddAnchor(t.Context(), again))
		t.append(access(team, newPersonID()))
		require.Equal(t, int64(3), t.unanchored(team).Seq)
		second := t.anchor(team, noon.Add(time.Hour))
		require.Equal(t, []accesslog.Anchor{first, second}, t.anchors(team))
		require.NoError(t, t.anchors(team)[1].Verify(accessKey.Public().(ed25519.PublicKey)))
		require.Empty(t, t.anchors(other))
		few, err := t.store.Unanchored(t.Context(), 0)
		require.NoError(t, err)
		require.Empty(t, few)
	},
	"Heads": func(t accessT) {
		head := func(q accesslog.HeadQuery) []accesslog.SignedHead {
			t.Helper()
			list, err := t.store.Heads(t.Context(), q)
			require.NoError(t, err)
			return list
		}
		var want []accesslog.SignedHead
		for n := range 3 {
			team := conformance.NewTeam()
			require.Empty(t, head(accesslog.HeadQuery{Team: team, N: 9}))
			for range n + 1 {
				t.append(access(team, newPersonID()))
			}
			lines := t.chain(team)
			h := accesslog.Head{Team: team, Seq: int64(n + 1), Hash: lines[n].Hash}
			want = append(want, accesslog.SignedHead{Head: h, Signature: signHead(h)})
			require.Equal(t, want[n:], head(accesslog.HeadQuery{Team: team, N: 9}))
		}
		slices.SortFunc(want, func(a, b accesslog.SignedHead) int { return bytes.Compare(a.Team.UUID[:], b.Team.UUID[:]) })
		var got []accesslog.SignedHead
		for after := (healthlab.TeamID{}); ; {
			page := head(accesslog.HeadQuery{After: after, N: 2})
			if len(page) == 0 {
				break
			}
			after = page[len(page)-1].Team
			for _, h := range page {
				if slices.ContainsFunc(want, func(w accesslog.SignedHead) bool { return w.Team == h.Team }) {
					got = append(got, h)
				}
			}
		}
		require.Equal(t, want, got)
		require.Empty(t, head(accesslog.HeadQuery{}))
	},
	"Prune": func(t accessT) {
		team, other := conformance.NewTeam(), conformance.NewTeam()
		old := noon.Add(-10 * time.Hour)
		t.append(access(team, newPersonID()), access(other, newPersonID()))
		t.anchor(team, old)
		t.append(access(team, newPersonID()))
		second := t.anchor(team, old.Add(time.Hour))
		t.append(access(team, newPersonID()))
		third := t.anchor(team, old.Add(2*time.Hour))
		require.NoError(t, t.store.Prune(t.Context(), old.Add(2*time.Hour)))
		require.Equal(t, []accesslog.Anchor{second, third}, t.anchors(team))
		rest := t.lines(accesslog.Query{Team: team, N: 9})
		require.Len(t, rest, 1)
		v := accesslog.Verifier{Head: second.Head}
		require.NoError(t, v.Check(&rest[0]))
		require.Len(t, t.chain(other), 1, "lines without an anchor stay")
		t.append(access(team, newPersonID()))
		rest = t.lines(accesslog.Query{Team: team, N: 9})
		require.NoError(t, v.Check(&rest[1]), "the chain goes on")
	},
	"Ended": func(t accessT) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		team := conformance.NewTeam()
		t.append(access(team, newPersonID()))
		second := func(_ any, err error) error { return err }
		for _, err := range []error{
			t.store.Append(ctx, []accesslog.Entry{access(team, newPersonID())}, nil),
			second(t.store.Seal(ctx, accesslog.SealQuery{N: 1}, signHead)), second(t.store.Unsealed(ctx, team)), second(t.store.Heads(ctx, accesslog.HeadQuery{N: 1})), second(t.store.Lines(ctx, accesslog.Query{Team: team, N: 1})),
			second(t.store.Unanchored(ctx, 1)), second(t.store.Anchors(ctx, team)), t.store.Prune(ctx, noon),
			t.store.AddAnchor(ctx, accesslog.Sign(accesslog.Head{Team: team, Seq: 1}, noon, accessKey)),
		} {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Len(t, t.chain(team), 1)
		require.Empty(t, t.anchors(team))
	},
}

// noon is the time of most entries and anchors in the tests. It is less than a second from the start of
// the test program.
var noon = time.Now().UTC().Truncate(time.Second).Add(123456 * time.Microsecond)
