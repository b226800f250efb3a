package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/aggregate/glucoseprofile"
)

// pagePrinter prints what it was given, in a few words.
type pagePrinter struct{}

func (pagePrinter) PrintProfile(_ context.Context, subject string, p *glucoseprofile.Profile) ([]byte, error) {
	return fmt.Appendf(nil, "%%PDF %s %s %d", subject, p.Unit, p.Readings), nil
}

// A profile is there as numbers and as a page, in both units, for the team of the person alone.
func TestGlucoseProfile_isServedAsJSONAndPDFOnlyToItsTeam(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v2/user/" + c.user.String() + "/glucose_profile?end_date=2026-03-04"
	c.get(path, 200) // without readings
	c.post(c.timeseries("glucose"), `{"provider":"manual","source":{"type":"automatic"},"data":[
		{"start":"2026-03-04T08:00:00+00:00","end":"2026-03-04T08:00:00+00:00","value":5.0,"unit":"mmol/L"},
		{"start":"2026-03-04T08:05:00+00:00","end":"2026-03-04T08:05:00+00:00","value":7.0,"unit":"mmol/L"}]}`, 200)
	type profile struct {
		StartDate string `json:"start_date"`
		Unit      string
		Readings  int
		Mean      *float64
		Clock     []struct {
			Minute int
			P50    *float64
		}
		Bands []struct {
			Name      string
			Low, High *float64
			Percent   *float64
		}
	}
	var p profile
	c.get(path, 200).JSON(t, &p)
	require.Equal(t, "2026-02-19", p.StartDate)
	require.Equal(t, 2, p.Readings)
	require.InDelta(t, 6, *p.Mean, 1e-9)
	require.InDelta(t, 6, *p.Clock[32].P50, 1e-9)
	require.Nil(t, p.Clock[33].P50)
	require.InDelta(t, 100, *p.Bands[2].Percent, 0)
	c.get(path+"&unit=mg/dL&days=7", 200).JSON(t, &p)
	require.InDelta(t, 6*18.0182, *p.Mean, 1e-9)
	require.Equal(t, "2026-02-26", p.StartDate)
	require.InDelta(t, 70, *p.Bands[2].Low, 0)

	refused := c.With("accept", "application/pdf").Send(t, "GET", path, nil).Want(t, http.StatusNotAcceptable)
	require.Contains(t, string(refused.Body), "it must include application/json")
	c.config.GlucoseProfiles = pagePrinter{}
	printing := contract.NewClient(t, c.config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	r := printing.With("accept", "application/pdf").Send(t, "GET", path+"&unit=mg/dL", nil).Want(t, 200)
	require.Equal(t, "application/pdf", r.Header.Get("Content-Type"))
	require.Equal(t, "private, no-store", r.Header.Get("Cache-Control"))
	require.Equal(t, "%PDF "+c.user.String()+" mg/dL 2", string(r.Body))
	c.get(path, 200).JSON(t, &p)

	for _, bad := range []string{"", "?end_date=yesterday", "?end_date=2026-03-04&days=0", "?end_date=2026-03-04&days=91", "?end_date=2026-03-04&unit=mol", "?end_date=2026-03-04&from=2"} {
		c.get("/v2/user/"+c.user.String()+"/glucose_profile"+bad, 422)
	}
	c.get("/v2/user/"+c.foreign.String()+"/glucose_profile?end_date=2026-03-04", 404)
}
