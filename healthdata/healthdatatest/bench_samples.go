package healthdatatest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// SampleStore is a store of samples that [BenchSamplesInTurn] measures. It has several series, numbered from 0; the
// parameter line is the number of a series. The benchmark of an adapter compares the adapter (see [SampleStoreOf]) with
// another SampleStore.
type SampleStore struct {
	// Write appends samples to the series line and returns when they are durable. One goroutine calls it for each
	// series.
	Write func(ctx context.Context, line int, samples *series.Block) error
	// Read decodes all samples of the series line and returns their number.
	Read func(ctx context.Context, line int) (int, error)
}

// benchLines is the number of series of a SampleStore. Each series belongs to its own user.
const benchLines = 64

// SampleStoreOf returns a SampleStore with benchLines series in h, each the steps of a new user.
func SampleStoreOf(b *testing.B, h DataHarness) SampleStore {
	users := make([]healthdata.User, benchLines)
	team := conformance.NewTeam()
	for i := range users {
		users[i] = LiveUser(team, fmt.Sprint(i))
		require.NoError(b, h.Users.Insert(b.Context(), users[i], 0))
	}
	return SampleStore{
		Write: func(ctx context.Context, line int, samples *series.Block) error {
			u := &users[line]
			return h.Data.MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{{Key: Steps, Samples: samples, Span: series.PerMinute}}, nil)
		},
		Read: func(ctx context.Context, line int) (n int, err error) {
			u := &users[line]
			err = h.Data.View(ctx, u.Team, u.ID, func(v healthdata.View) error {
				n, err = readColumns(ctx, v)
				return err
			})
			return n, err
		},
	}
}

// readColumns decodes all samples of the series [Steps] of a user, as a query does, and returns their number.
func readColumns(ctx context.Context, v healthdata.View) (n int, err error) {
	all, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{Steps.Resource}, Key: &Steps})
	if err != nil {
		return 0, err
	}
	var scan series.Scanner
	for _, s := range all {
		starts := make([]int64, len(s.Chunks))
		for i := range starts {
			starts[i] = s.Chunks[i].Start
		}
		chunks, err := v.Load(ctx, s.Key, starts)
		if err != nil {
			return 0, err
		}
		for block, err := range scan.Blocks(chunks, s.Pending, series.Range{From: series.MinTime, To: series.MaxTime}) {
			if err != nil {
				return 0, err
			}
			n += block.Len()
		}
	}
	return n, nil
}

// heartbeat returns n samples for the series line, one a minute, the first from minutes after noon. The values vary
// like a heart rate.
func heartbeat(line, from, n int) *series.Block {
	b := new(series.Block)
	for i := range n {
		at := from + i
		b.Append(series.Sample{
			Time:  noon.UnixMicro()/60_000_000*60_000_000 + int64(at)*60_000_000,
			Value: float64(60 + (at*at/7+at/50+line)%40),
			Attrs: series.Attrs{Offset: 3600},
		})
	}
	return b
}

// BenchSamplesInTurn compares the SampleStore of newKeeper with that of newOther. It writes batches of several sizes
// from one caller, then single samples from 64 callers, and reads a year of samples. It alternates between the stores,
// after at most 100 writes of one caller, or 200 writes of each of many callers, so that both see the same load of the
// disk. The metric of-other is the throughput of the first store divided by that of the other. us/call and
// other-us/call are the times of a call in the two stores, in microseconds, divided by the number of callers.
func BenchSamplesInTurn(b *testing.B, newKeeper, newOther func(b *testing.B) SampleStore) {
	const lines = 4
	for _, n := range []int{1, 100, 1000, 10_000} {
		calls := min(100, 40_000/n)
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			keepers := [2]SampleStore{newKeeper(b), newOther(b)}
			for _, k := range keepers {
				for line := range lines {
					require.NoError(b, k.Write(b.Context(), line, heartbeat(line, -2000, 2000)))
				}
			}
			var took [2]time.Duration
			turns := 0
			for ; b.Loop(); turns++ {
				for i, k := range keepers {
					for call := range calls {
						line := call % lines
						samples := heartbeat(line, (turns*calls+call)/lines*n, n)
						begun := time.Now()
						if err := k.Write(b.Context(), line, samples); err != nil {
							b.Fatal(err)
						}
						took[i] += time.Since(begun)
					}
				}
			}
			all := float64(turns * calls)
			b.ReportMetric(float64(took[1])/float64(took[0]), "of-other")
			b.ReportMetric(float64(took[0].Microseconds())/all, "us/call")
			b.ReportMetric(float64(took[1].Microseconds())/all, "other-us/call")
		})
	}
	b.Run("n=1/callers=64", func(b *testing.B) { benchCallersByTurns(b, [2]SampleStore{newKeeper(b), newOther(b)}) })
	b.Run("Read/year", func(b *testing.B) { benchReadByTurns(b, [2]SampleStore{newKeeper(b), newOther(b)}) })
}

// benchReadByTurns reads a year from each of two SampleStores, alternating between them.
func benchReadByTurns(b *testing.B, keepers [2]SampleStore) {
	for _, k := range keepers {
		FillYear(b, k)
	}
	var took [2]time.Duration
	turns := 0
	for ; b.Loop(); turns++ {
		for i, k := range keepers {
			begun := time.Now()
			if n, err := k.Read(b.Context(), 0); err != nil || n != year {
				b.Fatal(n, err)
			}
			took[i] += time.Since(begun)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "of-other")
	b.ReportMetric(float64(took[0].Microseconds())/float64(turns), "us/call")
	b.ReportMetric(float64(took[1].Microseconds())/float64(turns), "other-us/call")
}

// benchCallersByTurns writes single samples from many callers to each of two SampleStores, alternating between them.
func benchCallersByTurns(b *testing.B, keepers [2]SampleStore) {
	const calls = 200
	for _, k := range keepers {
		for line := range benchLines {
			require.NoError(b, k.Write(b.Context(), line, heartbeat(line, -2000, 2000)))
		}
	}
	var took [2]time.Duration
	turns := 0
	for ; b.Loop(); turns++ {
		for i, k := range keepers {
			errs := make(chan error, benchLines)
			begun := time.Now()
			for line := range benchLines {
				go func() {
					var err error
					for call := 0; call < calls && err == nil; call++ {
						err = k.Write(b.Context(), line, heartbeat(line, turns*calls+call, 1))
					}
					errs <- err
				}()
			}
			for range benchLines {
				if err := <-errs; err != nil {
					b.Fatal(err)
				}
			}
			took[i] += time.Since(begun)
		}
	}
	all := float64(turns * calls * benchLines)
	b.ReportMetric(float64(took[1])/float64(took[0]), "of-other")
	b.ReportMetric(float64(took[0].Microseconds())/all, "us/call")
	b.ReportMetric(float64(took[1].Microseconds())/all, "other-us/call")
}

const year = 525_600 // minutes

// FillYear writes a year of samples, one a minute, to series 0 of a SampleStore.
func FillYear(b *testing.B, k SampleStore) {
	const piece = 5_256
	for at := 0; at < year; at += piece {
		require.NoError(b, k.Write(b.Context(), 0, heartbeat(0, at, piece)))
	}
}
