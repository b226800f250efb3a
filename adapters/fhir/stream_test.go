package fhir_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// meter is an answer that is not kept: it counts its bytes, and the memory that is in use on the way.
type meter struct {
	header http.Header
	status int
	bytes  int
	next   int
	every  int
	most   uint64
}

func (m *meter) Header() http.Header { return m.header }

func (m *meter) WriteHeader(status int) { m.status = status }

func (m *meter) Write(b []byte) (int, error) {
	if m.bytes += len(b); m.every > 0 && m.bytes >= m.next {
		m.next = m.bytes + m.every
		m.most = max(m.most, inUse())
	}
	return len(b), nil
}

func inUse() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// What $everything keeps in memory does not grow with a person's data.
func TestEverything_isStreamedInBoundedMemory(t *testing.T) {
	c := newClinic(t)
	minutes := prove.Counts(10, 30, 365) * 24 * 60
	start := noon(0).Add(-time.Duration(minutes) * time.Minute)
	for _, resource := range []string{"heartrate", "respiratory_rate", "blood_oxygen"} {
		list := make([]healthdata.Sample, 0, 10_000)
		send := func() {
			_, err := c.s.Health.IngestSamples(t.Context(), c.team, c.ben, resource, healthdata.Upload{
				Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: healthdata.SourceWatch},
			}, list)
			require.NoError(t, err)
			list = list[:0]
		}
		for i := range minutes / 5 {
			list = append(list, healthdata.Sample{
				Timestamp: healthlab.At(start.Add(time.Duration(5*i) * time.Minute)), Unit: healthdata.ResourceBySlug(resource).Unit, Value: &healthdata.Value{Number: float64(60 + i%30)},
			})
			if len(list) == cap(list) {
				send()
			}
		}
		send()
	}
	ask := func(every int) *meter {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/Patient/"+c.ben.String()+"/$everything?interval=hour", http.NoBody)
		r.Header.Set("x-service-api-key", "team")
		m := &meter{header: http.Header{}, every: every}
		c.handler.ServeHTTP(m, r)
		require.Contains(t, []int{0, http.StatusOK}, m.status)
		return m
	}
	began := time.Now()
	whole := ask(0)
	t.Logf("%d kB, %.1f MB/s", whole.bytes>>10, float64(whole.bytes)/1e6/time.Since(began).Seconds())
	before := inUse()
	m := ask(whole.bytes / 20)
	require.Equal(t, whole.bytes, m.bytes)
	t.Logf("%d kB beside what is stored", (int64(m.most)-int64(before))>>10)
	require.Less(t, int64(m.most)-int64(before), int64(64<<20))
}

// Days without samples are not read; the days beside them are, on the clock of the person.
func TestEverything_findsSingleSamplesOfSparseDays(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	for ago := range 17 { // as many days as are read at once, and one more
		u, err := c.s.Health.CreateUser(t.Context(), c.team, healthdata.NewUser{ClientUserID: strconv.Itoa(ago)})
		require.NoError(t, err)
		_, err = c.s.Health.Connections().ConnectLinked(t.Context(), c.team, u.ID, healthdata.NewConnection{Provider: "manual"})
		require.NoError(t, err)
		day := healthlab.DateOf(noon(1000 + ago))
		for _, one := range []struct {
			resource  string
			east, day int
			hour      int
		}{{"hrv_sdnn", -12, 0, 23}, {"glucose", 14, 0, 0}, {"respiratory_rate", 0, -2000, 5}, {"respiratory_rate", 0, 999, 5}} {
			offset := one.east * 3600
			at := day.AddDays(one.day).At(time.FixedZone("", offset)).Add(time.Duration(one.hour) * time.Hour)
			_, err := c.s.Health.IngestSamples(t.Context(), c.team, u.ID, one.resource, healthdata.Upload{
				Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: "fingerprick"},
			}, []healthdata.Sample{{Timestamp: healthlab.At(at), TimezoneOffset: &offset, Unit: healthdata.ResourceBySlug(one.resource).Unit, Value: &healthdata.Value{Number: 20}}})
			require.NoError(t, err)
		}
		var got []string
		for _, id := range ids(c.get("team", "/Patient/"+u.ID.String()+"/$everything?interval=hour&_type=Observation", http.StatusOK)) {
			got = append(got, strings.SplitN(id, ".", 3)[2])
		}
		require.ElementsMatch(t, []string{
			"hv." + day.String() + "T23", "gf." + day.String() + "T00", "rr." + day.AddDays(-2000).String() + "T05", "rr." + day.AddDays(999).String() + "T05",
		}, got)
	}
}
