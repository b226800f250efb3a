package accesslogtest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/accesslog/accesslogtest"
)

func accessMutant(name, dies string, how func(b *brokenAccessLog)) conformance.Broken {
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		b := &brokenAccessLog{Store: memory.New(nil).AccessLog()}
		how(b)
		accesslogtest.RunStore(t, b)
	}, Subtest: dies}
}

var brokenStores = []conformance.Broken{
	accessMutant("adds what comes before a bad entry", "Refused", func(b *brokenAccessLog) {
		b.append = func(ctx context.Context, list []accesslog.Entry, stored func()) error {
			for i := range list {
				if err := b.Store.Append(ctx, list[i:i+1], stored); err != nil {
					return err
				}
			}
			return ctx.Err()
		}
	}),
	accessMutant("loses an entry", "Concurrent", func(b *brokenAccessLog) {
		b.append = func(ctx context.Context, list []accesslog.Entry, stored func()) error {
			if len(list) == 3 && list[0].Team != list[1].Team {
				list = list[:2]
			}
			return b.Store.Append(ctx, list, stored)
		}
	}),
	accessMutant("changes a line that is read", "RoundTrip", func(b *brokenAccessLog) {
		b.lines = func(ctx context.Context, q accesslog.Query) ([]accesslog.Line, error) {
			list, err := b.Store.Lines(ctx, q)
			for i := range list {
				list[i].Address = ""
			}
			return list, err
		}
	}),
	accessMutant("shows lines of other persons", "Pages", func(b *brokenAccessLog) {
		b.lines = func(ctx context.Context, q accesslog.Query) ([]accesslog.Line, error) {
			q.Person = healthlab.UserID{}
			return b.Store.Lines(ctx, q)
		}
	}),
	accessMutant("keeps no signature", "Heads", func(b *brokenAccessLog) {
		b.seal = func(ctx context.Context, q accesslog.SealQuery, _ func(accesslog.Head) []byte) (int, error) {
			return b.Store.Seal(ctx, q, func(accesslog.Head) []byte { return nil })
		}
	}),
	accessMutant("seals lines of other teams", "Unsealed", func(b *brokenAccessLog) {
		b.seal = func(ctx context.Context, q accesslog.SealQuery, sign func(accesslog.Head) []byte) (int, error) {
			return b.Store.Seal(ctx, accesslog.SealQuery{N: q.N}, sign)
		}
	}),
	accessMutant("seals more lines than asked for", "Unsealed", func(b *brokenAccessLog) {
		b.seal = func(ctx context.Context, q accesslog.SealQuery, sign func(accesslog.Head) []byte) (int, error) {
			if q.N > 0 {
				q.N = 1000
			}
			return b.Store.Seal(ctx, q, sign)
		}
	}),
	accessMutant("does not say that entries are stored", "Unsealed", func(b *brokenAccessLog) {
		b.append = func(ctx context.Context, list []accesslog.Entry, _ func()) error {
			return b.Store.Append(ctx, list, nil)
		}
	}),
	accessMutant("seals entries in another order", "Unsealed", func(b *brokenAccessLog) {
		b.append = func(ctx context.Context, list []accesslog.Entry, stored func()) error {
			list = slices.Clone(list)
			slices.Reverse(list)
			return b.Store.Append(ctx, list, stored)
		}
	}),
	accessMutant("removes no lines", "Prune", func(b *brokenAccessLog) {
		b.prune = func(ctx context.Context, _ time.Time) error { return ctx.Err() }
	}),
	accessMutant("replaces an anchor", "Anchors", func(b *brokenAccessLog) {
		b.addAnchor = func(ctx context.Context, a accesslog.Anchor) error {
			a.At = a.At.Add(time.Hour)
			return b.Store.AddAnchor(ctx, a)
		}
	}),
}
