package orderstest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

// brokenReviews is a store of results under review with methods replaced.
type brokenReviews struct {
	overriddenReviewStore
	overriddenMatchTestRuns
}

func (b *brokenReviews) UpdateResult(ctx context.Context, team healthlab.TeamID, id exchange.RawResultID, change func(*exchange.RawResult) ([]healthlab.Event, error)) (exchange.RawResult, error) {
	return b.AssignResult(ctx, team, id, exchange.Assignment{}, func(r *exchange.RawResult, _, _ *orders.Record) ([]healthlab.Event, error) { return change(r) })
}

func spoiltReviews(spoil func(*brokenReviews)) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunReviews(t, func(testing.TB) orderstest.ReviewsHarness {
			s, clock := clockedStore()
			b := &brokenReviews{overriddenReviewStore: overriddenReviewStore{ReviewStore: s.Reviews()}, overriddenMatchTestRuns: overriddenMatchTestRuns{MatchTestStore: s.MatchTestRuns()}}
			spoil(b)
			return orderstest.ReviewsHarness{Reviews: b, MatchTestRuns: b, Orders: s.Orders(), Users: s.Users(), Messages: s.WebhookLog(), SetClock: clock.Set}
		})
	}
}

// brokenReviewStores are stores of results under review that break one promise each.
var brokenReviewStores = []conformance.Broken{
	{Name: "forgets events", Suite: spoiltReviews(func(b *brokenReviews) {
		b.insertResult = func(ctx context.Context, r exchange.RawResult, _ []healthlab.Event) error {
			return b.ReviewStore.InsertResult(ctx, r, nil)
		}
	}), Subtest: "Insert/RoundTrip"},
	{Name: "takes what is there", Suite: spoiltReviews(func(b *brokenReviews) {
		b.insertResult = func(ctx context.Context, r exchange.RawResult, events []healthlab.Event) error {
			if _, err := b.Result(ctx, r.Team, r.ID); err == nil {
				return nil
			}
			return b.ReviewStore.InsertResult(ctx, r, events)
		}
	}), Subtest: "Insert/Duplicate"},
	{Name: "shows what operations alone see", Suite: spoiltReviews(func(b *brokenReviews) {
		b.results = func(ctx context.Context, q exchange.ResultQuery) (exchange.ResultPage, error) {
			page, err := b.ReviewStore.Results(ctx, q)
			if q.Status == "" && q.Decision == "" && q.LabSlug == "" && q.Search == "" && q.Cursor == "" {
				q.Status = exchange.MatchPendingOps
				more, _ := b.ReviewStore.Results(ctx, q)
				page.Results, page.Total = append(page.Results, more.Results...), page.Total+more.Total
			}
			return page, err
		}
	}), Subtest: "List/Filters"},
	{Name: "shows who asks for operations all that they see", Suite: spoiltReviews(func(b *brokenReviews) {
		b.results = func(ctx context.Context, q exchange.ResultQuery) (exchange.ResultPage, error) {
			q.Escalated = false
			return b.ReviewStore.Results(ctx, q)
		}
	}), Subtest: "List/Filters"},
	{Name: "counts the page", Suite: spoiltReviews(func(b *brokenReviews) {
		b.results = func(ctx context.Context, q exchange.ResultQuery) (exchange.ResultPage, error) {
			page, err := b.ReviewStore.Results(ctx, q)
			page.Total = len(page.Results)
			return page, err
		}
	}), Subtest: "List/Pages"},
	{Name: "keeps what is nobody's", Suite: spoiltReviews(func(b *brokenReviews) {
		b.insertResult = func(ctx context.Context, r exchange.RawResult, events []healthlab.Event) error {
			err := b.ReviewStore.InsertResult(ctx, r, events)
			if errors.Is(err, healthlab.NotFound) {
				r.Subject = healthlab.UserID{}
				err = b.ReviewStore.InsertResult(ctx, r, events)
			}
			return err
		}
	}), Subtest: "Insert/OfNobody"},
	{Name: "forgets where a page ended once that is decided", Suite: spoiltReviews(func(b *brokenReviews) {
		b.results = func(ctx context.Context, q exchange.ResultQuery) (exchange.ResultPage, error) {
			page, err := b.ReviewStore.Results(ctx, q)
			if q.Cursor != "" && err == nil && page.Total < 3 {
				return exchange.ResultPage{}, catalogue.BadCursor()
			}
			return page, err
		}
	}), Subtest: "List/PagesWhileDecided"},
	{Name: "holds for ever", Suite: spoiltReviews(func(b *brokenReviews) {
		b.assignResult = func(ctx context.Context, team healthlab.TeamID, id exchange.RawResultID, s exchange.Assignment, c exchange.AssignChange) (exchange.RawResult, error) {
			return b.ReviewStore.AssignResult(ctx, team, id, s, func(r *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				if was == nil {
					return c(r, was, made)
				}
				visits := slices.Clone(was.Visits)
				events, err := c(r, was, made)
				was.Visits = visits
				return events, err
			})
		}
	}), Subtest: "Assign/GivesBackWhatIsHeld"},
	{Name: "shows decisions the caller's clock", Suite: spoiltReviews(func(b *brokenReviews) {
		b.assignResult = func(ctx context.Context, team healthlab.TeamID, id exchange.RawResultID, s exchange.Assignment, c exchange.AssignChange) (exchange.RawResult, error) {
			return b.ReviewStore.AssignResult(ctx, team, id, s, func(r *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				for _, side := range []*orders.Record{was, made} {
					if side != nil {
						side.StoreTime = time.Now().UTC()
					}
				}
				return c(r, was, made)
			})
		}
	}), Subtest: "Assign/StoreTime"},
	{Name: "writes the result first", Suite: spoiltReviews(func(b *brokenReviews) {
		b.assignResult = func(ctx context.Context, team healthlab.TeamID, id exchange.RawResultID, s exchange.Assignment, c exchange.AssignChange) (exchange.RawResult, error) {
			if s.New == nil {
				return b.ReviewStore.AssignResult(ctx, team, id, s, c)
			}
			_, _ = b.ReviewStore.AssignResult(ctx, team, id, exchange.Assignment{}, func(r *exchange.RawResult, _, _ *orders.Record) ([]healthlab.Event, error) {
				r.Status = exchange.MatchResolved
				return nil, nil
			})
			return b.ReviewStore.AssignResult(ctx, team, id, s, c)
		}
	}), Subtest: "Assign/AllOrNothing"},
	{Name: "resolves for nobody", Suite: spoiltReviews(func(b *brokenReviews) {
		b.assignResult = func(ctx context.Context, team healthlab.TeamID, id exchange.RawResultID, s exchange.Assignment, c exchange.AssignChange) (exchange.RawResult, error) {
			r, err := b.ReviewStore.AssignResult(ctx, team, id, s, c)
			if !errors.Is(err, healthlab.NotFound) || s.New == nil {
				return r, err
			}
			made := *s.New
			return b.ReviewStore.AssignResult(ctx, team, id, exchange.Assignment{}, func(r *exchange.RawResult, _, _ *orders.Record) ([]healthlab.Event, error) {
				return c(r, nil, &made)
			})
		}
	}), Subtest: "Assign/NewOrderOfNobody"},
	{Name: "gives a result twice", Suite: spoiltReviews(func(b *brokenReviews) {
		b.assignResult = func(ctx context.Context, team healthlab.TeamID, id exchange.RawResultID, s exchange.Assignment, c exchange.AssignChange) (exchange.RawResult, error) {
			return b.ReviewStore.AssignResult(ctx, team, id, s, func(r *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				if was != nil {
					r.Status = exchange.MatchPendingCustomer
				}
				return c(r, was, made)
			})
		}
	}), Subtest: "Assign/OnlyOneWins"},
	{Name: "forgets the order", Suite: spoiltReviews(func(b *brokenReviews) {
		b.assignResult = func(ctx context.Context, team healthlab.TeamID, id exchange.RawResultID, s exchange.Assignment, c exchange.AssignChange) (exchange.RawResult, error) {
			return b.ReviewStore.AssignResult(ctx, team, id, s, func(r *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				events, err := c(r, was, made)
				if was != nil {
					was.Results = nil
				}
				return events, err
			})
		}
	}), Subtest: "Assign/ExistingOrder"},
	{Name: "leaves a specimen where it was", Suite: spoiltReviews(func(b *brokenReviews) {
		b.assignResult = func(ctx context.Context, team healthlab.TeamID, id exchange.RawResultID, s exchange.Assignment, c exchange.AssignChange) (exchange.RawResult, error) {
			return b.ReviewStore.AssignResult(ctx, team, id, s, func(r *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				events, err := c(r, was, made)
				if was != nil && was.SampleID == nil && made != nil {
					made.SampleID = nil
				}
				return events, err
			})
		}
	}), Subtest: "Assign/SpecimenMoves"},
	{Name: "starts a run for every request", Suite: spoiltReviews(func(b *brokenReviews) {
		b.startMatchTestRun = func(ctx context.Context, t simulation.MatchTestRecord) (simulation.MatchTestRecord, bool, error) {
			t.Key += t.Fingerprint
			return b.MatchTestStore.StartMatchTestRun(ctx, t)
		}
	}), Subtest: "Trials/OnePerKey"},
	{Name: "claims without a lease", Suite: spoiltReviews(func(b *brokenReviews) {
		b.claimMatchTestRuns = func(ctx context.Context, n int, _ time.Duration) ([]simulation.MatchTestRecord, error) {
			return b.MatchTestStore.ClaimMatchTestRuns(ctx, n, 0)
		}
	}), Subtest: "Trials/ClaimAndUpdate"},
}
