package receivertest

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// RunSeenModel makes random calls of a [receiver.Seen] and compares the verdicts with those of a simple model. One
// store serves all sequences of calls; each sequence has its own ids and keys.
func RunSeenModel(t *testing.T, newStore func(t *testing.T) SeenHarness) {
	store := newStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := seenModel{
			sight: sight{store, t}, prefix: uuid.NewString(),
			ids: map[string]*seenEntry{}, keys: map[string]*seenEntry{},
		}
		rt.Repeat(map[string]func(*rapid.T){
			"Claim":   m.claimOne,
			"Done":    func(rt *rapid.T) { m.end(rt, true) },
			"Release": func(rt *rapid.T) { m.end(rt, false) },
			"Wait":    m.wait,
		})
	})
}

// seenEntry is the model's state of an id or a key; times are in minutes.
type seenEntry struct {
	holder            uuid.UUID
	heldUntil, memory int
	version           receiver.Version
}

// seenModel is a simple model of a [receiver.Seen]. Its clock counts minutes. The store's clock runs less than a minute
// during the test, so nothing may end within a minute of a call.
type seenModel struct {
	sight
	prefix    string
	now       int
	ids, keys map[string]*seenEntry
	claims    []receiver.Claim
}

// Odd numbers, because the model's calls are at even minutes.
const (
	seenModelLease       = 5
	seenModelKeep        = 61
	seenModelKeepVersion = 241
)

func entry(table map[string]*seenEntry, name string) *seenEntry {
	if table[name] == nil {
		table[name] = &seenEntry{}
	}
	return table[name]
}

func (m *seenModel) claimOne(rt *rapid.T) {
	c := receiver.Claim{
		Token: uuid.New(), ID: m.prefix + strconv.Itoa(rapid.IntRange(1, 6).Draw(rt, "id")),
		Lease: seenModelLease * time.Minute, Keep: seenModelKeep * time.Minute, KeepVersion: seenModelKeepVersion * time.Minute,
	}
	if key := rapid.IntRange(0, 3).Draw(rt, "key"); key > 0 {
		c.Key = m.prefix + "/" + strconv.Itoa(key)
		c.Version = receiver.Version{
			Seq: rapid.Int64Range(0, 3).Draw(rt, "seq"), Step: rapid.Int64Range(0, 2).Draw(rt, "step"),
			At: longAgo.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "at")) * time.Microsecond),
		}
	}
	got, err := m.Seen.Claim(m.t.Context(), c)
	require.NoError(rt, err)
	require.Equal(rt, m.verdict(c).String(), got.String())
	if got != receiver.Fresh {
		return
	}
	m.claims = append(m.claims, c)
	for _, e := range m.entries(c) {
		e.holder, e.heldUntil = c.Token, m.now+seenModelLease
	}
}

func (m *seenModel) entries(c receiver.Claim) []*seenEntry {
	out := []*seenEntry{entry(m.ids, c.ID)}
	if c.Key != "" {
		out = append(out, entry(m.keys, c.Key))
	}
	return out
}

func (m *seenModel) verdict(c receiver.Claim) receiver.Verdict {
	id, key := entry(m.ids, c.ID), &seenEntry{}
	if c.Key != "" {
		key = entry(m.keys, c.Key)
	}
	switch {
	case m.now < id.memory:
		return receiver.Repeated
	case m.now < id.heldUntil:
		return receiver.Busy
	case m.now < key.memory && c.Version.Before(key.version):
		return receiver.Outdated
	case m.now < key.heldUntil:
		return receiver.Busy
	default:
		return receiver.Fresh
	}
}

// end ends one of the granted claims, whose lease may have ended: by Done if done is true, otherwise by Release.
func (m *seenModel) end(rt *rapid.T, done bool) {
	if len(m.claims) == 0 {
		rt.Skip("nothing was claimed")
	}
	c := m.claims[rapid.IntRange(0, len(m.claims)-1).Draw(rt, "claim")]
	for _, e := range m.entries(c) {
		if e.holder == c.Token {
			e.heldUntil = 0
		}
	}
	if !done {
		require.NoError(rt, m.Seen.Release(m.t.Context(), c))
		return
	}
	require.NoError(rt, m.Seen.Done(m.t.Context(), c))
	entry(m.ids, c.ID).memory = m.now + seenModelKeep
	if c.Key == "" {
		return
	}
	key := entry(m.keys, c.Key)
	if m.now >= key.memory || !c.Version.Before(key.version) {
		key.version, key.memory = c.Version, m.now+seenModelKeepVersion
	}
}

func (m *seenModel) wait(rt *rapid.T) {
	minutes := 2 * rapid.IntRange(1, 40).Draw(rt, "two minutes")
	m.now += minutes
	m.Advance(time.Duration(minutes) * time.Minute)
}
