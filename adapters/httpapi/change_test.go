package httpapi_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// changes is a service with an access log in the store of its users.
type changes struct {
	*contract.Client
	t       *testing.T
	store   *memory.Store
	handler http.Handler
	health  *healthdata.Service
	access  *accesslog.Service
	user    healthlab.UserID
	commits int
	// again is how often a transaction is run before the run that is committed.
	again int
	// lost is what a transaction fails with at its end; nil commits.
	lost error
	// lostAfter, if it is not 0, is how many transactions are committed before all others fail.
	lostAfter int
}

var errLostRun = errors.New("lost against another transaction")

// newChanges returns a service. log, if it is not nil, replaces the store of its access log.
func newChanges(t *testing.T, log func(accesslog.Store) accesslog.Store) *changes {
	t.Helper()
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	c := &changes{t: t, store: memory.New(&memory.Options{Keys: personkey.New(memory.NewPersonKeys(), sealer, nil)})}
	var resources []healthdata.ProviderResource
	for _, r := range healthdata.Resources() {
		resources = append(resources, healthdata.ProviderResource{Resource: r.Slug})
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: resources}})
	require.NoError(t, err)
	c.health, err = healthdata.New(c.store.Users(), c.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	u, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-77"})
	require.NoError(t, err)
	c.user = u.ID
	_, err = c.health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)
	lines := c.store.AccessLog()
	if log != nil {
		lines = log(lines)
	}
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	c.access, err = accesslog.New(lines, key, nil)
	require.NoError(t, err)
	logs := &contract.Logs{}
	c.handler = httpapi.Handler(httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
		Access:       c.access,
		Transact:     c.transact,
		Log:          logs.Logger(),
		Parts:        (&httpapi.Services{Health: c.health}).Parts(),
	})
	c.Client = contract.NewClient(t, c.handler, httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	return c
}

// transact runs a function as often as c.again says, and undoes all runs but the last.
func (c *changes) transact(ctx context.Context, run func(context.Context) error) error {
	update := func(end error) error {
		return c.store.Rows().Update(ctx, func(ctx context.Context, _ store.Tx) error {
			return errors.Join(run(ctx), end)
		})
	}
	for range c.again {
		if err := update(errLostRun); !errors.Is(err, errLostRun) {
			return err
		}
	}
	if c.lostAfter > 0 && c.commits == c.lostAfter {
		return update(healthlab.Unavailable)
	}
	c.commits++
	return update(c.lost)
}

// operations returns which operations are in the log.
func (c *changes) operations() (out []string) {
	c.t.Helper()
	lines, err := c.access.Lines(c.t.Context(), accesslog.Query{Team: team, N: 100})
	require.NoError(c.t, err)
	for _, l := range lines {
		out = append(out, l.Operation)
	}
	return out
}

// samples returns how many heart rates the user has.
func (c *changes) samples() (n int) {
	c.t.Helper()
	require.NoError(c.t, c.health.View(c.t.Context(), team, c.user, func(v healthdata.View) error {
		all, err := v.Series(c.t.Context(), healthdata.SeriesQuery{Resources: []string{"heartrate"}, From: 0, To: 1 << 60})
		n = len(all)
		return err
	}))
	return n
}

func (c *changes) upload() *contract.Reply {
	c.t.Helper()
	return c.Send(c.t, "POST", "/v2/timeseries/"+c.user.String()+"/heartrate", object{
		"provider": "manual", "data": []object{{"timestamp": "2026-03-02T12:00:00Z", "value": 61, "unit": "bpm"}},
	})
}

// uploadUnavailable uploads a sample, which must be answered with 503. The contract does not name it.
func (c *changes) uploadUnavailable() {
	c.t.Helper()
	body := `{"provider":"manual","data":[{"timestamp":"2026-03-02T12:00:00Z","value":61,"unit":"bpm"}]}`
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/v2/timeseries/"+c.user.String()+"/heartrate", strings.NewReader(body))
	r.Header.Set("x-service-api-key", goodKey)
	r.Header.Set("Content-Type", "application/json")
	c.handler.ServeHTTP(w, r)
	require.Equal(c.t, http.StatusServiceUnavailable, w.Code)
}

func (c *changes) sleep() *contract.Reply {
	c.t.Helper()
	return c.Send(c.t, "POST", "/v2/summary/sleep/"+c.user.String(), object{"provider": "manual", "data": []object{{
		"external_id": "n1", "bedtime_start": "2026-03-02T22:00:00+01:00", "bedtime_stop": "2026-03-03T06:00:00+01:00",
	}}})
}

// stream uploads the recording of a workout with an altitude and a position that cannot be.
func (c *changes) stream() *contract.Reply {
	c.t.Helper()
	c.Send(c.t, "POST", "/v2/summary/workouts/"+c.user.String(), object{"provider": "manual", "data": []object{{
		"external_id": "w1", "time_start": "2026-03-02T10:00:00Z", "time_end": "2026-03-02T11:00:00Z",
	}}}).Want(c.t, 200)
	var list struct{ Workouts []healthdata.Workout }
	c.Send(c.t, "GET", "/v2/summary/workouts/"+c.user.String()+"?start_date=2026-03-01&end_date=2026-03-04", nil).Want(c.t, 200).JSON(c.t, &list)
	require.Len(c.t, list.Workouts, 1)
	return c.Send(c.t, "POST", "/v2/timeseries/"+c.user.String()+"/workouts/"+list.Workouts[0].ID.String()+"/stream", object{"provider": "manual", "stream": object{
		"time": []int64{1772445600, 1772445660}, "altitude": []float64{90_000, 40}, "lat": []float64{99, 52}, "lng": []float64{13, 13}, "heartrate": []int64{0, 120},
	}})
}

// An operation that changes something answers after one commit, which has its line in the access log.
func TestChange_takesOneTransactionWithItsAccessLogLine(t *testing.T) {
	c := newChanges(t, nil)
	c.upload().Want(t, 200)
	require.Equal(t, 1, c.commits)
	require.Equal(t, 1, c.samples())
	c.Send(t, "POST", "/v2/user/", object{"client_user_id": "patient-78"}).Want(t, 200)
	c.Send(t, "PATCH", "/v2/user/"+c.user.String(), object{"fallback_time_zone": "Europe/Berlin"}).Want(t, 204)
	require.Equal(t, 3, c.commits)
	require.Equal(t, []string{"ingest_samples", "create_user", "patch_user"}, c.operations())
}

// A run that lost against another transaction leaves nothing, and the next run answers as if it were
// the first one.
func TestChange_retriedTransactionAnswersLikeTheFirst(t *testing.T) {
	once, often := newChanges(t, nil), newChanges(t, nil)
	often.again = 2
	for name, send := range map[string]func(*changes) *contract.Reply{
		"samples": (*changes).upload, "summaries": (*changes).sleep, "stream": (*changes).stream,
	} {
		want, got := send(once).Want(t, 200).Body, send(often).Want(t, 200).Body
		require.JSONEq(t, string(want), string(got), name)
	}
	require.Equal(t, 1, often.samples())
	require.Equal(t, once.operations(), often.operations())
	var night [2]struct {
		Sleep []struct {
			Start string `json:"bedtime_start"`
		}
	}
	for i, c := range []*changes{once, often} {
		c.Send(t, "GET", "/v2/summary/sleep/"+c.user.String()+"?start_date=2026-03-01&end_date=2026-03-04", nil).Want(t, 200).JSON(t, &night[i])
	}
	require.Len(t, night[0].Sleep, 1)
	require.Equal(t, night[0], night[1])
}

// A change that is refused is not stored, and its line is.
func TestChange_refusedRequestIsLoggedButNotStored(t *testing.T) {
	c := newChanges(t, nil)
	c.Send(t, "POST", "/v2/timeseries/"+c.user.String()+"/heartrate", object{
		"provider": "other", "data": []object{{"timestamp": "2026-03-02T12:00:00Z", "value": 61, "unit": "bpm"}},
	}).Want(t, 422)
	c.Send(t, "POST", "/v2/timeseries/"+c.user.String()+"/heartrate", object{"provider": 1}).Want(t, 422)
	require.Zero(t, c.samples())
	require.Equal(t, []string{"ingest_samples", "ingest_samples"}, c.operations())
	lines, err := c.access.Lines(t.Context(), accesslog.Query{Team: team, N: 9})
	require.NoError(t, err)
	require.Equal(t, []int{422, 422}, []int{lines[0].Status, lines[1].Status})
}

// What could not be committed is answered as an error, whose line is in the log.
func TestChange_failedCommitAnswers503AndIsLogged(t *testing.T) {
	c := newChanges(t, nil)
	c.lost = healthlab.Unavailable
	c.uploadUnavailable()
	require.Zero(t, c.samples())
	lines, err := c.access.Lines(t.Context(), accesslog.Query{Team: team, N: 9})
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.Equal(t, 503, lines[0].Status)
}

// A change whose line cannot be stored is not stored.
func TestChange_isNotStoredWithoutItsAccessLogLine(t *testing.T) {
	c := newChanges(t, func(s accesslog.Store) accesslog.Store { return downLog{s} })
	c.uploadUnavailable()
	require.Zero(t, c.samples())
}

// bodies uploads n summaries at one minute after the other, the last ones first, with query behind the path.
func (c *changes) bodies(n int, query string) *httptest.ResponseRecorder {
	c.t.Helper()
	var items strings.Builder
	for i := range n {
		at := time.Date(2026, 3, 1, 0, n-i, 0, 0, time.UTC)
		fmt.Fprintf(&items, `,{"measured_at":%q,"weight":%d}`, at.Format(time.RFC3339), 60+i%9)
	}
	body := `{"provider":"manual","data":[{"no":1}` + items.String() + `]}`
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/v2/summary/body/"+c.user.String()+query, strings.NewReader(body))
	r.Header.Set("x-service-api-key", goodKey)
	r.Header.Set("Content-Type", "application/json")
	c.handler.ServeHTTP(w, r)
	return w
}

func (c *changes) stored() int {
	c.t.Helper()
	list, err := c.health.Summaries(c.t.Context(), team, c.user, healthdata.SummaryQuery{Resource: "body"})
	require.NoError(c.t, err)
	return len(list)
}

// An upload of many summaries is stored in parts, each with its line in the access log. The answer is that
// of a single write.
func TestChange_largeUploadIsStoredInParts(t *testing.T) {
	const n = 2*healthdata.SummariesOfPart + 1
	for _, again := range []int{0, 1} {
		c := newChanges(t, nil)
		c.again = again
		w := c.bodies(n, "")
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var counts healthdata.Counts
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &counts))
		require.Equal(t, n, counts.New)
		require.Equal(t, 1, counts.RefusedCount)
		require.Equal(t, 3, c.commits)
		require.Equal(t, []string{"ingest_body", "ingest_body", "ingest_body"}, c.operations())
		require.Equal(t, n, c.stored())
		require.Contains(t, c.bodies(n, "").Body.String(), fmt.Sprintf(`"same":%d`, n))
	}
}

// If a part cannot be stored, those before it are, and the upload sent once more stores the rest.
func TestChange_failedPartKeepsEarlierPartsAndResendStoresTheRest(t *testing.T) {
	const n = 2*healthdata.SummariesOfPart + 1
	c := newChanges(t, nil)
	c.lostAfter = 1
	require.Equal(t, http.StatusServiceUnavailable, c.bodies(n, "").Code)
	require.Equal(t, healthdata.SummariesOfPart, c.stored())
	lines, err := c.access.Lines(t.Context(), accesslog.Query{Team: team, N: 9})
	require.NoError(t, err)
	require.Len(t, lines, 2, "that of the part, and that of the answer")
	require.ElementsMatch(t, []int{200, 503}, []int{lines[0].Status, lines[1].Status})
	c.lostAfter = 0
	require.Contains(t, c.bodies(n, "").Body.String(), fmt.Sprintf(`{"new":%d,"changed":0,"same":%d,`, n-healthdata.SummariesOfPart, healthdata.SummariesOfPart))
	require.Equal(t, n, c.stored())
}

// An atomic upload is one transaction, however many summaries it has.
func TestChange_atomicUploadTakesOneTransaction(t *testing.T) {
	const n = 2*healthdata.SummariesOfPart + 1
	c := newChanges(t, nil)
	require.Equal(t, http.StatusUnprocessableEntity, c.bodies(n, "?atomic=true").Code, "an item is refused")
	require.Zero(t, c.stored())
	c.commits = 0
	send := func(n int) *contract.Reply {
		items := make([]object, n)
		for i := range items {
			items[i] = object{"measured_at": time.Date(2026, 3, 1, 0, i, 0, 0, time.UTC).Format(time.RFC3339)}
		}
		return c.Send(t, "POST", "/v2/summary/body/"+c.user.String()+"?atomic=true", object{"provider": "manual", "data": items})
	}
	var counts healthdata.Counts
	send(n).Want(t, 200).JSON(t, &counts)
	require.Equal(t, n, counts.New)
	require.Equal(t, 1, c.commits)
	require.Contains(t, string(send(10_001).Want(t, 422).Body), "must have at most 10000 items with atomic=true")
	require.Equal(t, n, c.stored())
}

// A removal names a bounded number of summaries, because it is one transaction.
func TestRemoval_takesAtMost5000Summaries(t *testing.T) {
	c := newChanges(t, nil)
	ids := make([]string, 5000)
	for i := range ids {
		ids[i] = fmt.Sprint("n", i)
	}
	c.sleep().Want(t, 200)
	path := "/v2/summary/sleep/" + c.user.String() + "/remove"
	require.JSONEq(t, `{"removed":1}`, string(c.Send(t, "POST", path, object{"provider": "manual", "external_ids": ids}).Want(t, 200).Body))
	require.Contains(t, string(c.Send(t, "POST", path, object{"provider": "manual", "external_ids": append([]string{"n"}, ids...)}).Want(t, 422).Body), "too_many_items")
}
