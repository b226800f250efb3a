package labjournaltest_test

import (
	"context"
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labjournal/labjournaltest"
)

//go:generate go run ../../../internal/conformance/gen overriddenJournal=orders/labjournal.Store

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t, brokenJournals)
}

func spoiltJournal(spoil func(*overriddenJournal)) func(*testing.T) {
	return func(t *testing.T) {
		labjournaltest.RunStore(t, func(testing.TB) labjournaltest.Harness {
			s := memory.New(nil)
			j := &overriddenJournal{Store: s.LabJournal()}
			spoil(j)
			return labjournaltest.Harness{Journal: j, Users: s.Users()}
		})
	}
}

// brokenJournals break one promise each.
var brokenJournals = []conformance.Broken{
	{Name: "opens the newest record", Suite: spoiltJournal(func(j *overriddenJournal) {
		j.open = func(ctx context.Context, lab string, r labjournal.Record) (labjournal.Record, error) {
			_, err := j.Store.Open(ctx, lab, r)
			return r, err
		}
	}), Subtest: "Open/First"},
	{Name: "takes a message that comes again", Suite: spoiltJournal(func(j *overriddenJournal) {
		n := 0
		j.take = func(ctx context.Context, lab string, d labjournal.Delivery, numbers []string, change labjournal.Change) (bool, error) {
			n++
			d.Key += string(rune('a' + n%20))
			return j.Store.Take(ctx, lab, d, numbers, change)
		}
	}), Subtest: "Take/Once"},
	{Name: "keeps what a change did before its error", Suite: spoiltJournal(func(j *overriddenJournal) {
		j.take = func(ctx context.Context, lab string, d labjournal.Delivery, numbers []string, change labjournal.Change) (bool, error) {
			var failed error
			fresh, err := j.Store.Take(ctx, lab, d, numbers, func(found map[string]*labjournal.Record) (out labjournal.Outcome, err error) {
				out, failed = change(found)
				return out, nil
			})
			if err == nil {
				err = failed
			}
			return fresh, err
		}
	}), Subtest: "Take/Error"},
	{Name: "mixes laboratories", Suite: spoiltJournal(func(j *overriddenJournal) {
		j.feed = func(ctx context.Context, _ string, after int64, n int) ([]labjournal.Entry, error) {
			return j.Store.Feed(ctx, "north", after, n)
		}
	}), Subtest: "Labs/Apart"},
	{Name: "has nothing after a place that is not reached", Suite: spoiltJournal(func(j *overriddenJournal) {
		j.feed = func(ctx context.Context, lab string, after int64, n int) ([]labjournal.Entry, error) {
			if after > 10 {
				return nil, ctx.Err()
			}
			return j.Store.Feed(ctx, lab, after, n)
		}
	}), Subtest: "Feed/LostPlace"},
	{Name: "shows only the first page of a review", Suite: spoiltJournal(func(j *overriddenJournal) {
		j.review = func(ctx context.Context, lab string, _ int64, n int) ([]labjournal.Delivery, error) {
			return j.Store.Review(ctx, lab, 0, n)
		}
	}), Subtest: "Review/Pages"},
	{Name: "leaves a settled delivery under review", Suite: spoiltJournal(func(j *overriddenJournal) {
		j.take = func(ctx context.Context, lab string, d labjournal.Delivery, numbers []string, change labjournal.Change) (bool, error) {
			d.Resolves = 0
			return j.Store.Take(ctx, lab, d, numbers, change)
		}
	}), Subtest: "Review/Resolve"},
	{Name: "keeps the feed of erased users", Suite: spoiltJournal(func(j *overriddenJournal) {
		var kept []labjournal.Entry
		j.feed = func(ctx context.Context, lab string, after int64, n int) ([]labjournal.Entry, error) {
			if after != 0 || n != 10 {
				return j.Store.Feed(ctx, lab, after, n)
			}
			entries, err := j.Store.Feed(ctx, lab, after, n)
			if len(entries) > len(kept) {
				kept = entries
			}
			return kept, err
		}
		j.record = func(ctx context.Context, lab, number string) (labjournal.Record, error) {
			_, _ = j.Feed(ctx, lab, 0, 10)
			return j.Store.Record(ctx, lab, number)
		}
	}), Subtest: "Erase"},
	{Name: "hands out what it keeps", Suite: spoiltJournal(func(j *overriddenJournal) {
		kept := map[string]labjournal.Record{}
		j.record = func(ctx context.Context, lab, number string) (labjournal.Record, error) {
			if r, ok := kept[number]; ok {
				return r, ctx.Err()
			}
			r, err := j.Store.Record(ctx, lab, number)
			if err == nil {
				kept[number] = r
			}
			return r, err
		}
	}), Subtest: "Take/Copies"},
}
