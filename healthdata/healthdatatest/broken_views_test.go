package healthdatatest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// seesWrites takes a new look for every question.
func seesWrites(b *brokenData) {
	b.look = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
		again := func(ask func(healthdata.View) error) error { return b.Data.View(ctx, team, user, ask) }
		return read(&brokenView{
			records: func(ctx context.Context, q healthdata.RecordQuery) (out []healthdata.Record, err error) {
				err = again(func(v healthdata.View) (err error) { out, err = v.Records(ctx, q); return err })
				return out, err
			},
			series: func(ctx context.Context, q healthdata.SeriesQuery) (out []healthdata.Series, err error) {
				err = again(func(v healthdata.View) (err error) { out, err = v.Series(ctx, q); return err })
				return out, err
			},
			load: func(ctx context.Context, key healthdata.SeriesKey, starts []int64) (out []series.Chunk, err error) {
				err = again(func(v healthdata.View) (err error) { out, err = v.Load(ctx, key, starts); return err })
				return out, err
			},
		})
	}
}

func hidesReadErrors(b *brokenData) {
	b.look = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
		if err := b.Data.View(ctx, team, user, read); err != nil {
			return errors.New("view failed")
		}
		return nil
	}
}

func sortsByID(b *brokenData) {
	b.view = func(v healthdata.View) healthdata.View {
		return &brokenView{View: v, records: func(ctx context.Context, q healthdata.RecordQuery) ([]healthdata.Record, error) {
			out, err := v.Records(ctx, q)
			slices.SortFunc(out, func(a, b healthdata.Record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
			return out, err
		}}
	}
}

func excludesTo(b *brokenData) {
	b.view = func(v healthdata.View) healthdata.View {
		return &brokenView{View: v, records: func(ctx context.Context, q healthdata.RecordQuery) ([]healthdata.Record, error) {
			out, err := v.Records(ctx, q)
			return slices.DeleteFunc(out, func(r healthdata.Record) bool { return r.Index.Equal(q.To) }), err
		}}
	}
}

func alwaysRaw(b *brokenData) {
	b.view = func(v healthdata.View) healthdata.View {
		return &brokenView{View: v, records: func(ctx context.Context, q healthdata.RecordQuery) ([]healthdata.Record, error) {
			out, err := v.Records(ctx, q)
			for i := range out {
				out[i].Raw = []byte(`{}`)
			}
			return out, err
		}}
	}
}

func withData(b *brokenData) {
	b.view = func(v healthdata.View) healthdata.View {
		return &brokenView{View: v, series: func(ctx context.Context, q healthdata.SeriesQuery) ([]healthdata.Series, error) {
			out, err := v.Series(ctx, q)
			for _, s := range out {
				for i := range s.Chunks {
					s.Chunks[i].Data = []byte{1}
				}
			}
			return out, err
		}}
	}
}

func ignoresRange(b *brokenData) {
	b.view = func(v healthdata.View) healthdata.View {
		return &brokenView{View: v, series: func(ctx context.Context, q healthdata.SeriesQuery) ([]healthdata.Series, error) {
			q.From, q.To = 0, 0
			return v.Series(ctx, q)
		}}
	}
}

func makesChunksUp(b *brokenData) {
	b.view = func(v healthdata.View) healthdata.View {
		return &brokenView{View: v, load: func(ctx context.Context, key healthdata.SeriesKey, starts []int64) ([]series.Chunk, error) {
			out, err := v.Load(ctx, key, starts)
			if errors.Is(err, healthlab.NotFound) {
				return make([]series.Chunk, len(starts)), nil
			}
			return out, err
		}}
	}
}
