package labjournaltest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
)

// Harness is a fresh, empty store of journals and users.
type Harness struct {
	Journal labjournal.Store
	Users   healthdata.Users
}

// RunStore runs the contract tests of [labjournal.Store]. newStore returns a new, empty store for each case and
// registers its own cleanup on t.
func RunStore(t *testing.T, newStore func(t testing.TB) Harness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"Open/First", openFirst},
		{"Open/Text", openText},
		{"Record/Missing", recordMissing},
		{"Take/Effects", takeEffects},
		{"Take/Once", takeOnce},
		{"Take/Error", takeError},
		{"Take/Copies", takeCopies},
		{"Deliveries", deliveries},
		{"Feed/Pages", feedPages},
		{"Feed/LostPlace", feedLostPlace},
		{"Feed/Unknown", feedUnknown},
		{"Review/Pages", reviewPages},
		{"Review/Resolve", reviewResolve},
		{"Labs/Apart", labsApart},
		{"Erase", erase},
		{"Context", endedContext},
		{"Concurrent", concurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t)) })
	}
}

const lab = "north"

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func record(number, user string) labjournal.Record {
	return labjournal.Record{Number: number, Team: conformance.Team("a"), User: conformance.User(user), Doc: []byte("doc of " + number)}
}

// message returns a message about the named user; an empty name means an unknown person.
func message(user, doc string) labjournal.Message {
	m := labjournal.Message{Team: conformance.Team("a"), Doc: []byte(doc)}
	if user != "" {
		m.User = conformance.User(user)
	}
	return m
}

func delivery(key string) labjournal.Delivery {
	return labjournal.Delivery{Key: key, At: noon, Team: conformance.Team("a"), Raw: []byte("raw " + key)}
}

func nothing(map[string]*labjournal.Record) (labjournal.Outcome, error) {
	return labjournal.Outcome{}, nil
}

func sends(messages ...labjournal.Message) labjournal.Change {
	return func(map[string]*labjournal.Record) (labjournal.Outcome, error) {
		return labjournal.Outcome{Messages: messages}, nil
	}
}

func holdForReview(reason string) labjournal.Change {
	return func(map[string]*labjournal.Record) (labjournal.Outcome, error) {
		return labjournal.Outcome{Review: reason}, nil
	}
}

func (h Harness) open(t *testing.T, r labjournal.Record) {
	t.Helper()
	got, err := h.Journal.Open(t.Context(), lab, r)
	require.NoError(t, err)
	require.Equal(t, r, got)
}

func (h Harness) take(t *testing.T, d labjournal.Delivery, change labjournal.Change, numbers ...string) {
	t.Helper()
	fresh, err := h.Journal.Take(t.Context(), lab, d, numbers, change)
	require.NoError(t, err)
	require.True(t, fresh)
}

func (h Harness) doc(t *testing.T, number string) string {
	t.Helper()
	r, err := h.Journal.Record(t.Context(), lab, number)
	require.NoError(t, err)
	return string(r.Doc)
}

// feed returns the Docs of a page of the feed, and the place of its last message.
func (h Harness) feed(t *testing.T, after int64, n int) (docs []string, last int64) {
	t.Helper()
	entries, err := h.Journal.Feed(t.Context(), lab, after, n)
	require.NoError(t, err)
	for _, e := range entries {
		require.Greater(t, e.Place, last, "places grow")
		docs, last = append(docs, string(e.Doc)), e.Place
	}
	return docs, last
}

func (h Harness) review(t *testing.T, after int64, n int) []labjournal.Delivery {
	t.Helper()
	list, err := h.Journal.Review(t.Context(), lab, after, n)
	require.NoError(t, err)
	return list
}

func openFirst(t *testing.T, h Harness) {
	h.open(t, record("1", "ana"))
	other := record("1", "bo")
	got, err := h.Journal.Open(t.Context(), lab, other)
	require.NoError(t, err)
	require.Equal(t, record("1", "ana"), got, "the first stays")
	got, err = h.Journal.Record(t.Context(), lab, "1")
	require.NoError(t, err)
	require.Equal(t, record("1", "ana"), got)
}

func openText(t *testing.T, h Harness) {
	for _, number := range []string{"", "a\x00", "\xff"} {
		_, err := h.Journal.Open(t.Context(), lab, record(number, "ana"))
		require.ErrorIs(t, err, healthlab.Invalid)
		_, err = h.Journal.Take(t.Context(), lab, delivery(number), nil, nothing)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	binary := record("1", "ana")
	binary.Doc = []byte{1, 0, 0xff}
	h.open(t, binary)
	require.Equal(t, string(binary.Doc), h.doc(t, "1"), "a doc is bytes")
}

func recordMissing(t *testing.T, h Harness) {
	_, err := h.Journal.Record(t.Context(), lab, "1")
	require.ErrorIs(t, err, healthlab.NotFound)
	feed, last := h.feed(t, 0, 10)
	require.Empty(t, feed)
	require.Zero(t, last)
	require.Empty(t, h.review(t, 0, 10))
}

func takeEffects(t *testing.T, h Harness) {
	h.open(t, record("1", "ana"))
	h.open(t, record("2", "bo"))
	h.take(t, delivery("k"), func(found map[string]*labjournal.Record) (labjournal.Outcome, error) {
		require.Len(t, found, 2, "those that the journal has, each once")
		require.Equal(t, record("1", "ana"), *found["1"])
		found["1"].Doc = []byte("changed")
		return labjournal.Outcome{Messages: []labjournal.Message{message("ana", "first"), message("", "second")}, Review: "why"}, nil
	}, "1", "2", "3", "1")
	require.Equal(t, "changed", h.doc(t, "1"))
	require.Equal(t, "doc of 2", h.doc(t, "2"))
	entries, err := h.Journal.Feed(t.Context(), lab, 0, 10)
	require.NoError(t, err)
	require.Equal(t, []labjournal.Entry{{Place: 1, Message: message("ana", "first")}, {Place: 2, Message: message("", "second")}}, entries)
	want := delivery("k")
	want.Place, want.Review = 1, "why"
	require.Equal(t, []labjournal.Delivery{want}, h.review(t, 0, 10))
}

func takeOnce(t *testing.T, h Harness) {
	h.take(t, delivery("k"), sends(message("ana", "first")))
	h.take(t, delivery("held"), holdForReview("why"))
	for _, key := range []string{"k", "held"} {
		fresh, err := h.Journal.Take(t.Context(), lab, delivery(key), nil, func(map[string]*labjournal.Record) (labjournal.Outcome, error) {
			t.Error("a delivery that is known has no effect")
			return labjournal.Outcome{}, nil
		})
		require.NoError(t, err)
		require.False(t, fresh)
	}
	docs, _ := h.feed(t, 0, 10)
	require.Equal(t, []string{"first"}, docs)
}

func takeError(t *testing.T, h Harness) {
	h.open(t, record("1", "ana"))
	errChange := errors.New("change")
	_, err := h.Journal.Take(t.Context(), lab, delivery("k"), []string{"1"}, func(found map[string]*labjournal.Record) (labjournal.Outcome, error) {
		found["1"].Doc = []byte("changed")
		return labjournal.Outcome{Messages: []labjournal.Message{message("ana", "x")}, Review: "why"}, errChange
	})
	require.ErrorIs(t, err, errChange)
	require.Equal(t, "doc of 1", h.doc(t, "1"))
	docs, _ := h.feed(t, 0, 10)
	require.Empty(t, docs)
	require.Empty(t, h.review(t, 0, 10))
	h.take(t, delivery("k"), nothing)
}

func takeCopies(t *testing.T, h Harness) {
	r := record("1", "ana")
	h.open(t, r)
	r.Doc[0] = '!'
	d, m := delivery("k"), message("ana", "first")
	var held *labjournal.Record
	h.take(t, d, func(found map[string]*labjournal.Record) (labjournal.Outcome, error) {
		held = found["1"]
		return labjournal.Outcome{Messages: []labjournal.Message{m}, Review: "why"}, nil
	}, "1")
	held.Doc[0], d.Raw[0], m.Doc[0] = '!', '!', '!'
	for range 2 {
		got, err := h.Journal.Record(t.Context(), lab, "1")
		require.NoError(t, err)
		require.Equal(t, "doc of 1", string(got.Doc))
		got.Doc[0] = '!'
		entries, err := h.Journal.Feed(t.Context(), lab, 0, 1)
		require.NoError(t, err)
		require.Equal(t, "first", string(entries[0].Doc))
		entries[0].Doc[0] = '!'
		list := h.review(t, 0, 1)
		require.Equal(t, "raw k", string(list[0].Raw))
		list[0].Raw[0] = '!'
	}
}

func deliveries(t *testing.T, h Harness) {
	h.open(t, record("1", "ana"))
	h.open(t, record("2", "bo"))
	h.take(t, delivery("k"), nothing, "0", "1", "2")
	h.take(t, delivery("l"), nothing, "2")
	h.take(t, delivery("m"), nothing, "1")
	h.take(t, delivery("held"), holdForReview("why"), "1")
	list, err := h.Journal.Deliveries(t.Context(), lab, "1")
	require.NoError(t, err)
	require.Len(t, list, 2, "those of the order, without the one under review")
	want := delivery("k")
	want.Place = list[0].Place
	require.Equal(t, want, list[0])
	require.Equal(t, "raw m", string(list[1].Raw))
	require.Greater(t, list[1].Place, list[0].Place)
	list, err = h.Journal.Deliveries(t.Context(), lab, "3")
	require.NoError(t, err)
	require.Empty(t, list)
}

func feedPages(t *testing.T, h Harness) {
	for i := range 5 {
		h.take(t, delivery(strconv.Itoa(i)), sends(message("ana", strconv.Itoa(i))))
	}
	docs, last := h.feed(t, 0, 2)
	require.Equal(t, []string{"0", "1"}, docs)
	docs, last = h.feed(t, last, 2)
	require.Equal(t, []string{"2", "3"}, docs)
	docs, last = h.feed(t, last, 2)
	require.Equal(t, []string{"4"}, docs)
	docs, _ = h.feed(t, last, 2)
	require.Empty(t, docs)
	docs, _ = h.feed(t, 0, 0)
	require.Empty(t, docs)
}

func feedLostPlace(t *testing.T, h Harness) {
	h.take(t, delivery("k"), sends(message("ana", "first"), message("ana", "second")))
	docs, _ := h.feed(t, 50, 10)
	require.Equal(t, []string{"first", "second"}, docs)
}

// feedUnknown tests that the feed deletes messages about an unknown person once a reader has passed them, and no
// others.
func feedUnknown(t *testing.T, h Harness) {
	h.take(t, delivery("k"), sends(message("", "first"), message("ana", "second"), message("", "third")))
	docs, _ := h.feed(t, 0, 10)
	require.Equal(t, []string{"first", "second", "third"}, docs, "a page that was not answered comes again")
	docs, last := h.feed(t, 0, 2)
	require.Equal(t, []string{"first", "second"}, docs)
	docs, _ = h.feed(t, last, 10)
	require.Equal(t, []string{"third"}, docs)
	docs, _ = h.feed(t, 0, 10)
	require.Equal(t, []string{"second", "third"}, docs)
	docs, _ = h.feed(t, 50, 10)
	require.Equal(t, []string{"second", "third"}, docs, "a place of a lost journal deletes nothing")
}

func reviewPages(t *testing.T, h Harness) {
	for _, key := range []string{"a", "b", "c"} {
		h.take(t, delivery(key), holdForReview("reason "+key))
		h.take(t, delivery("none "+key), nothing)
	}
	list := h.review(t, 0, 2)
	require.Equal(t, []string{"a", "b"}, []string{list[0].Key, list[1].Key})
	list = h.review(t, list[1].Place, 2)
	require.Len(t, list, 1)
	require.Equal(t, "reason c", list[0].Review)
	require.Empty(t, h.review(t, list[0].Place, 2))
}

func reviewResolve(t *testing.T, h Harness) {
	h.open(t, record("1", "ana"))
	h.take(t, delivery("a"), holdForReview("why"))
	h.take(t, delivery("b"), holdForReview("why"))
	place := h.review(t, 0, 1)[0].Place
	settle := delivery("settles a")
	settle.Resolves = place
	h.take(t, settle, sends(message("ana", "of a")), "1")
	list := h.review(t, 0, 10)
	require.Len(t, list, 1)
	require.Equal(t, "b", list[0].Key)
	settled, err := h.Journal.Deliveries(t.Context(), lab, "1")
	require.NoError(t, err)
	require.Len(t, settled, 1)
	require.Equal(t, "raw settles a", string(settled[0].Raw))
	settle.Key = "settles a otherwise"
	_, err = h.Journal.Take(t.Context(), lab, settle, nil, sends(message("ana", "of a, twice")))
	require.ErrorIs(t, err, healthlab.NotFound)
	docs, _ := h.feed(t, 0, 10)
	require.Equal(t, []string{"of a"}, docs)
	fresh, err := h.Journal.Take(t.Context(), lab, delivery("a"), nil, nothing)
	require.NoError(t, err)
	require.False(t, fresh, "what was settled stays known")
}

func labsApart(t *testing.T, h Harness) {
	h.open(t, record("1", "ana"))
	h.take(t, delivery("k"), sends(message("ana", "of north")))
	h.take(t, delivery("held"), holdForReview("why"))
	_, err := h.Journal.Record(t.Context(), "south", "1")
	require.ErrorIs(t, err, healthlab.NotFound)
	entries, err := h.Journal.Feed(t.Context(), "south", 0, 10)
	require.NoError(t, err)
	require.Empty(t, entries)
	list, err := h.Journal.Review(t.Context(), "south", 0, 10)
	require.NoError(t, err)
	require.Empty(t, list)
	fresh, err := h.Journal.Take(t.Context(), "south", delivery("k"), nil, sends(message("ana", "of south")))
	require.NoError(t, err)
	require.True(t, fresh)
	docs, _ := h.feed(t, 0, 10)
	require.Equal(t, []string{"of north"}, docs)
}

func erase(t *testing.T, h Harness) {
	for _, name := range []string{"ana", "bo"} {
		u := healthdata.User{ID: conformance.User(name), Team: conformance.Team("a"), ClientUserID: name, CreatedOn: healthlab.At(noon)}
		require.NoError(t, h.Users.Insert(t.Context(), u, 0))
		h.open(t, record(name, name))
	}
	h.take(t, delivery("k"), sends(message("ana", "of ana"), message("bo", "of bo"), message("", "of a person who is not known")))
	deleted := func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = noon
		return nil, nil
	}
	_, err := h.Users.Update(t.Context(), conformance.Team("a"), conformance.User("ana"), deleted)
	require.NoError(t, err)
	require.Equal(t, "doc of ana", h.doc(t, "ana"), "a user who is deleted can come back")
	h.take(t, delivery("of ana"), nothing, "ana")
	require.NoError(t, h.Users.Erase(t.Context(), conformance.Team("a"), conformance.User("ana")))
	_, err = h.Journal.Record(t.Context(), lab, "ana")
	require.ErrorIs(t, err, healthlab.NotFound)
	list, err := h.Journal.Deliveries(t.Context(), lab, "ana")
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, "doc of bo", h.doc(t, "bo"))
	docs, last := h.feed(t, 0, 10)
	require.Equal(t, []string{"of bo", "of a person who is not known"}, docs)
	h.take(t, delivery("l"), sends(message("bo", "later")))
	docs, _ = h.feed(t, last, 10)
	require.Equal(t, []string{"later"}, docs)
	unmatched := delivery("of a person who is not known")
	h.take(t, unmatched, nothing)
	list, err = h.Journal.Deliveries(t.Context(), lab, "ana")
	require.NoError(t, err)
	require.Empty(t, list)
}

func endedContext(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Journal.Open(ctx, lab, record("1", "ana"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Journal.Record(ctx, lab, "1")
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Journal.Take(ctx, lab, delivery("k"), nil, sends(message("ana", "first")))
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Journal.Deliveries(ctx, lab, "1")
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Journal.Feed(ctx, lab, 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Journal.Review(ctx, lab, 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	docs, _ := h.feed(t, 0, 10)
	require.Empty(t, docs)
}

// concurrent tests several writers that store the same deliveries while a reader follows the feed: the reader gets
// every message once.
func concurrent(t *testing.T, h Harness) {
	const writers, messages = 4, 20
	h.open(t, record("1", "ana"))
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range messages {
				key := strconv.Itoa(i)
				_, err := h.Journal.Take(ctx, lab, delivery(key), []string{"1"}, func(found map[string]*labjournal.Record) (labjournal.Outcome, error) {
					found["1"].Doc = fmt.Append(found["1"].Doc, "+", key)
					return labjournal.Outcome{Messages: []labjournal.Message{message("ana", key)}}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := make(chan []string)
	go func() {
		var docs []string
		var last int64
		for len(docs) < messages && ctx.Err() == nil {
			entries, err := h.Journal.Feed(ctx, lab, last, 3)
			if err != nil {
				t.Error(err)
				break
			}
			for _, e := range entries {
				docs, last = append(docs, string(e.Doc)), e.Place
			}
		}
		seen <- docs
	}()
	all.Wait()
	docs := <-seen
	stop()
	want, _ := h.feed(t, 0, 2*messages)
	require.Len(t, want, messages)
	require.Equal(t, want, docs)
	require.Len(t, h.doc(t, "1"), len("doc of 1")+10*2+10*3, "each delivery changed the record once")
}
