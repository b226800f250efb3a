package bench_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// withRecords is a person with summaries, too.
type withRecords struct {
	*person
	records []healthdata.Record
}

func (p *withRecords) add(t testing.TB, a *healthdata.Activity, provider string) {
	t.Helper()
	doc, err := json.Marshal(a)
	require.NoError(t, err)
	d := a.CalendarDate
	at := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
	p.records = append(p.records, healthdata.Record{
		Resource: "activity", ID: uuid.New(), Provider: provider, SourceType: "watch", Index: at, Doc: doc, CreatedAt: at, UpdatedAt: at,
	})
}

func (p *withRecords) View(_ context.Context, _ healthlab.TeamID, _ healthlab.UserID, read func(healthdata.View) error) error {
	return read(recordView{view{p.person}, p})
}

type recordView struct {
	view
	p *withRecords
}

func (v recordView) Records(_ context.Context, q healthdata.RecordQuery) (out []healthdata.Record, _ error) {
	for _, r := range v.p.records {
		if r.Resource == q.Resource && !r.Index.Before(q.From) && !r.Index.After(q.To) {
			out = append(out, r)
		}
	}
	return out, nil
}
