package lake_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/adapters/operations/lake"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// The service exports orders, results and summaries to a folder. The rows equal the answers of
// the API and have no personal data.
func TestExport_ofTheServiceEqualsTheAPIWithoutPersonalData(t *testing.T) {
	ctx := t.Context()
	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	require.NoError(t, err)
	place, err := blob.OpenDirectory(t.TempDir(), &blob.DirectoryOptions{Plain: true})
	require.NoError(t, err)
	store, team := memory.New(nil), healthlab.TeamID{UUID: uuid.New()}
	s, err := service.New(ctx, service.Config{
		AllowPlaintext: true,
		Environment:    healthlab.Sandbox, URL: "http://localhost:8080", Stores: store.Stores, Files: store.Blobs(),
		Secret: bytes.Repeat([]byte{7}, 32), Providers: providers, Catalogue: book, Laboratory: sandbox.NewLab(nil),
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	user, err := s.Health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-7"})
	require.NoError(t, err)
	_, err = s.Health.Connections().Connect(ctx, team, user.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)
	weight := 71.5
	measured := &healthdata.Body{Weight: &weight}
	measured.MeasuredAt = healthlab.At(time.Date(2026, 2, 3, 7, 0, 0, 0, time.UTC))
	_, err = s.Health.IngestSummaries(ctx, team, user.ID, "body", healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: "scale"}}, []healthdata.Summary{measured})
	require.NoError(t, err)

	page, err := book.FindLabTests(ctx, catalogue.LabTestQuery{Team: team})
	require.NoError(t, err)
	at := slices.IndexFunc(page.Tests, func(l catalogue.LabTest) bool { return l.Method == catalogue.Testkit })
	test := page.Tests[at]
	order, err := s.Orders.Place(ctx, team, orders.PlaceRequest{
		UserID: user.ID, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test.ID}},
		PatientDetails: people.PatientDetailsInput{FirstName: "Zenobia", LastName: "Quill", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
			Gender: people.Female, PhoneNumber: "+15550100", Email: "zenobia@example.com"},
		PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	})
	require.NoError(t, err)
	order, err = s.Exchange.Simulate(ctx, team, order.ID, "", orders.SimulationFlags{})
	require.NoError(t, err)
	results, err := s.Orders.Results(ctx, team, order.ID)
	require.NoError(t, err)
	require.NotEmpty(t, results.Results)

	key, err := s.Key("lake pseudonyms")
	require.NoError(t, err)
	teams := func(context.Context) ([]healthlab.TeamID, error) { return []healthlab.TeamID{team}, nil }
	exporter, err := lake.New(place, s.Health, teams, key, &lake.Options{Orders: s.Orders, Accessed: s.Accessed("lake", "data", "export_to_lake")})
	require.NoError(t, err)
	m, err := exporter.Export(ctx, team)
	require.NoError(t, err)
	files := map[string]lake.File{}
	for _, f := range m.Files {
		files[f.Resource] = f
	}
	read := func(resource string) []byte {
		require.Contains(t, files, resource)
		file, err := place.Open(ctx, files[resource].Path)
		require.NoError(t, err)
		defer file.Close()
		text, err := io.ReadAll(file)
		require.NoError(t, err)
		require.Equal(t, ".parquet", path.Ext(files[resource].Path))
		return text
	}
	type orderRow struct {
		User   string `parquet:"user,optional"`
		Order  string `parquet:"order,optional"`
		Status string `parquet:"status,optional"`
		Test   string `parquet:"lab_test,optional"`
	}
	text := read("order")
	placed, err := pq.Read[orderRow](bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.Len(t, placed, 1)
	require.Equal(t, string(order.LastEvent.Status), placed[0].Status)
	require.Equal(t, test.Slug, placed[0].Test)
	type resultRow struct {
		User  string  `parquet:"user,optional"`
		Order string  `parquet:"order,optional"`
		Slug  string  `parquet:"slug,optional"`
		Value float64 `parquet:"value,optional"`
		Text  string  `parquet:"result,optional"`
	}
	text = read("result")
	rows, err := pq.Read[resultRow](bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.Len(t, rows, len(results.Results))
	for i, r := range results.Results {
		require.Equal(t, []string{placed[0].User, placed[0].Order, r.Slug}, []string{rows[i].User, rows[i].Order, rows[i].Slug})
		if r.Type == labresult.Numeric {
			value, _ := r.Value.Float64()
			require.InDelta(t, value, rows[i].Value, 0)
		}
	}
	type bodyRow struct {
		User   string  `parquet:"user,optional"`
		Weight float64 `parquet:"weight_kilogram,optional"`
	}
	text = read("body")
	bodies, err := pq.Read[bodyRow](bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.Equal(t, []bodyRow{{placed[0].User, weight}}, bodies)

	for _, f := range m.Files {
		text := read(f.Resource)
		file, err := pq.OpenFile(bytes.NewReader(text), int64(len(text)))
		require.NoError(t, err)
		for _, group := range file.RowGroups() {
			reader := group.Rows()
			row := make([]pq.Row, 1)
			for {
				n, err := reader.ReadRows(row)
				if n == 0 {
					require.ErrorIs(t, err, io.EOF)
					break
				}
				for _, v := range row[0] {
					for _, personal := range []string{"Zenobia", "Quill", "1984", "Elm", "85201", "member-7", user.ID.String(), order.ID.String()} {
						require.NotContains(t, v.String(), personal, f.Resource)
					}
				}
			}
			require.NoError(t, reader.Close())
		}
	}
}
