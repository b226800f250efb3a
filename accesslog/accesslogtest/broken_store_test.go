package accesslogtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/accesslog/accesslogtest"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
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
		b.append = func(ctx context.Context, list []accesslog.Entry, sign func(accesslog.Head) []byte) error {
			for i := range list {
				if err := b.Store.Append(ctx, list[i:i+1], sign); err != nil {
					return err
				}
			}
			return ctx.Err()
		}
	}),
	accessMutant("loses an entry", "Concurrent", func(b *brokenAccessLog) {
		b.append = func(ctx context.Context, list []accesslog.Entry, sign func(accesslog.Head) []byte) error {
			if len(list) == 3 && list[0].Team != list[1].Team {
				list = list[:2]
			}
			return b.Store.Append(ctx, list, sign)
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
		b.append = func(ctx context.Context, list []accesslog.Entry, _ func(accesslog.Head) []byte) error {
			return b.Store.Append(ctx, list, func(accesslog.Head) []byte { return nil })
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
