package push_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/adapters/fhir/push"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/store"
)

// process is a Pusher that can be killed: from then on it reads and writes nothing.
type process struct {
	store.Store
	*push.Pusher
	ctx  context.Context
	kill context.CancelFunc
	dead atomic.Bool
	left atomic.Int64 // updates until it dies; 0 for never
}

func (p *process) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	if p.left.Add(-1) == 0 {
		p.die()
	}
	if p.dead.Load() {
		return fmt.Errorf("%w: killed", healthlab.Unavailable)
	}
	return p.Store.Update(ctx, run)
}

func (p *process) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	if p.dead.Load() {
		return nil, fmt.Errorf("%w: killed", healthlab.Unavailable)
	}
	return p.Store.Read(ctx, q...)
}

func (p *process) die() {
	p.dead.Store(true)
	p.kill()
}

// direct brings requests to a server without a network: a request of a killed process has ended when its sender has.
type direct struct{ *ehrServer }

func (d direct) RoundTrip(r *http.Request) (out *http.Response, err error) {
	w := httptest.NewRecorder()
	defer func() {
		if recover() != nil {
			out, err = nil, io.ErrUnexpectedEOF
		}
	}()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

func (c *clinic) process() *process {
	c.t.Helper()
	p := &process{Store: c.store.Rows()}
	p.ctx, p.kill = context.WithCancel(c.t.Context())
	c.t.Cleanup(p.kill)
	pipelines, err := ehr.New(ehr.NewRows(p), newSealer(c.t), &ehr.Options{Resources: fhir.Resources(), Now: c.clock.now})
	require.NoError(c.t, err)
	p.Pusher, err = push.New(pipelines, c.reader, &push.Options{Client: &http.Client{Transport: direct{c.server}}, Now: c.clock.now, Log: c.log, Entries: 5})
	require.NoError(c.t, err)
	return p
}

// A server and pushers that fail in every way, and are killed: in the end nothing is lost, nothing is there twice, and
// the states of a resource came in their order.
func TestPush_losesAndRepeatsNothingUnderFailures(t *testing.T) {
	for round := range prove.Counts(2, 6, 200) {
		t.Run(fmt.Sprint(round), func(t *testing.T) { failing(t, rand.New(rand.NewPCG(47, uint64(round)))) })
	}
}

func failing(t *testing.T, random *rand.Rand) {
	c := newClinic(t)
	var users []healthlab.UserID
	for i := range 3 {
		users = append(users, c.person(fmt.Sprint("person-", i)))
	}
	p := c.pipeline()
	var mu sync.Mutex // of random and running, in the server
	var running *process
	chance := func(percent int) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(100) < percent
	}
	die := func() {
		if running != nil && chance(10) {
			running.die()
		}
	}
	c.server.change(func(s *ehrServer) {
		s.next = func(object) fault {
			if chance(50) {
				return none
			}
			mu.Lock()
			defer mu.Unlock()
			return fault(random.IntN(int(faults)))
		}
		s.before, s.after = die, die
	})
	value := 40.0
	for range 25 {
		u := users[random.IntN(len(users))]
		switch n := random.IntN(20); {
		case n == 0:
			c.order(u)
		case n < 3:
			c.remove(u, "weight", c.noon(3))
		case n < 8:
			c.measure(u, "weight", c.noon(1+random.IntN(5)), 60+float64(random.IntN(30)))
		default: // one day whose values grow
			value++
			c.measure(u, "heartrate", c.noon(2).Truncate(24*time.Hour).Add(time.Hour), value)
		}
		running = c.process()
		if chance(30) {
			running.left.Store(1 + int64(random.IntN(8)))
		}
		list, err := running.Claim(running.ctx, 3)
		if err != nil {
			require.True(t, running.dead.Load(), err)
		}
		var all sync.WaitGroup
		for _, task := range list {
			all.Go(func() { _ = running.Do(running.ctx, task) }) // what it could not write comes back
		}
		all.Wait()
		c.clock.pass(time.Duration(random.IntN(600)) * time.Second)
	}
	c.server.change(func(s *ehrServer) { s.next, s.before, s.after = nil, nil, nil })
	c.settle(p)
	c.agree(users...)
	for id, r := range c.server.of("Observation", base+"/Observation") {
		if !strings.Contains(id, ".hr.") {
			continue
		}
		last := 0.0
		for _, v := range r.versions {
			now := v["valueQuantity"].(object)["value"].(float64)
			require.GreaterOrEqual(t, now, last, "an older state after a newer one")
			last = now
		}
	}
	page, err := c.pipelines.DeadLetters(t.Context(), ehr.LetterQuery{Team: c.team, Pipeline: p.ID})
	require.NoError(t, err)
	require.Empty(t, page.Letters)
}

func (c *clinic) letters(p ehr.Pipeline) []ehr.DeadLetter {
	c.t.Helper()
	page, err := c.pipelines.DeadLetters(c.t.Context(), ehr.LetterQuery{Team: c.team, Pipeline: p.ID, Size: 200})
	require.NoError(c.t, err)
	return page.Letters
}

func (c *clinic) runs(p ehr.Pipeline) []ehr.Run {
	c.t.Helper()
	page, err := c.pipelines.Runs(c.t.Context(), ehr.RunQuery{Team: c.team, Pipeline: p.ID, Size: 200})
	require.NoError(c.t, err)
	return page.Runs
}

// A run lasts until nothing is answered for a while, an hour at most, and is kept for 30 days.
func TestRun_endsAfterAPauseOrAnHourAndIsListedFor30Days(t *testing.T) {
	c := newClinic(t)
	ann := c.person("ann")
	c.measure(ann, "weight", c.noon(1), 70)
	p := c.pipeline()
	require.Empty(t, c.runs(p))
	c.push()
	first := c.runs(p)
	require.Len(t, first, 1)
	require.Equal(t, 2, first[0].Sent, "with the Patient")
	require.Equal(t, 1, first[0].Transactions)
	require.True(t, first[0].StartedAt.Equal(c.clock.now().Truncate(time.Microsecond)))

	c.push()
	require.Equal(t, first, c.runs(p), "nothing was to be sent")
	c.clock.pass(9 * time.Minute)
	c.measure(ann, "weight", c.noon(2), 71)
	c.push()
	runs := c.runs(p)
	require.Len(t, runs, 1)
	require.Equal(t, 3, runs[0].Sent)
	require.Equal(t, 9*time.Minute, runs[0].EndedAt.Sub(runs[0].StartedAt.Time))

	c.clock.pass(11 * time.Minute)
	c.server.change(func(s *ehrServer) { s.next = func(object) fault { return unavailable } })
	c.measure(ann, "weight", c.noon(3), 72)
	c.push()
	runs = c.runs(p)
	require.Len(t, runs, 2)
	require.Equal(t, first[0].ID, runs[1].ID, "the latest first")
	require.Equal(t, 1, runs[0].Failed)
	require.Equal(t, "the server answers the transaction with HTTP status 503", runs[0].LastError)
	require.Zero(t, runs[0].Sent)
	c.server.change(func(s *ehrServer) { s.next = nil })
	c.settle(p)
	for n := range 10 { // one that goes on
		c.measure(ann, "weight", c.noon(4+n), 73)
		c.push()
		c.clock.pass(9 * time.Minute)
	}
	sent := 0
	runs = c.runs(p)
	for i, r := range runs {
		sent += r.Sent
		require.LessOrEqual(t, r.EndedAt.Sub(r.StartedAt.Time), time.Hour)
		if i > 0 {
			require.True(t, r.EndedAt.Before(runs[i-1].StartedAt.Time))
		}
	}
	st, err := c.pipelines.State(t.Context(), c.team, p.ID)
	require.NoError(t, err)
	require.EqualValues(t, st.Pushed, sent)

	// Pages have each run once.
	var paged []ehr.Run
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := c.pipelines.Runs(t.Context(), ehr.RunQuery{Team: c.team, Pipeline: p.ID, Size: 2, Cursor: cursor})
		require.NoError(t, err)
		paged, cursor = append(paged, page.Runs...), page.Next
	}
	require.Equal(t, runs, paged)
	_, err = c.pipelines.Runs(t.Context(), ehr.RunQuery{Team: c.team, Pipeline: p.ID, Cursor: "marker"})
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = c.pipelines.Runs(t.Context(), ehr.RunQuery{Team: healthlab.TeamID{}, Pipeline: p.ID})
	require.ErrorIs(t, err, healthlab.NotFound)

	c.clock.pass(31 * 24 * time.Hour)
	c.push()
	for _, r := range c.runs(p) {
		require.False(t, r.StartedAt.Before(c.clock.now().Add(-30*24*time.Hour)))
	}
}

func refusing(value float64) func(object) bool {
	return func(r object) bool {
		q, ok := r["valueQuantity"].(object)
		return ok && q["value"] == value
	}
}

// A refused resource becomes a dead letter, without a value of the person, and the others go on.
func TestPush_refusedResourceBecomesADeadLetterAndOthersGoOn(t *testing.T) {
	c := newClinic(t)
	ann := c.person("ann")
	for d := range 40 {
		c.measure(ann, "heartrate", c.noon(d+1), 60.125+float64(d))
	}
	c.server.change(func(s *ehrServer) { s.refuse = refusing(77.125) })
	p := c.pipeline()
	c.push()
	require.Len(t, c.server.of("Observation", base+"/Observation"), 39)
	letters := c.letters(p)
	require.Len(t, letters, 1)
	require.Equal(t, "Observation", letters[0].ResourceType)
	require.Equal(t, 422, letters[0].Status)
	require.Equal(t, []string{"processing"}, letters[0].Codes)
	for _, e := range letters[0].Expressions {
		require.NotContains(t, e, markerInOutcome)
	}
	require.NotContains(t, c.logs.String(), markerInOutcome)
	require.NotContains(t, c.logs.String(), "77.125")
	st, err := c.pipelines.State(t.Context(), c.team, p.ID)
	require.NoError(t, err)
	require.Equal(t, 1, st.DeadLetters)
	require.EqualValues(t, 39, st.Pushed-1, "and the Patient")
	runs := c.runs(p)
	require.Len(t, runs, 1)
	require.Equal(t, 40, runs[0].Sent)
	require.Equal(t, 1, runs[0].DeadLetters)

	// It is not sent again where nothing has changed.
	c.measure(ann, "heartrate", c.noon(2), 100)
	before, _ := c.server.count()
	c.push()
	after, _ := c.server.count()
	require.Equal(t, 1, after-before)
	require.Len(t, c.letters(p), 1)

	// Replayed while it is refused it stays, and replayed after that it is taken.
	n, err := c.pipelines.Replay(t.Context(), c.team, p.ID, nil)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	c.push()
	require.Len(t, c.letters(p), 1)
	c.server.change(func(s *ehrServer) { s.refuse = nil })
	_, err = c.pipelines.Replay(t.Context(), c.team, p.ID, nil)
	require.NoError(t, err)
	c.push()
	require.Empty(t, c.letters(p))
	c.agree(ann)
}

// A correction is sent although the version before it was refused.
func TestPush_correctionOfARefusedResourceIsSent(t *testing.T) {
	c := newClinic(t)
	ann := c.person("ann")
	c.measure(ann, "weight", c.noon(1), 77)
	c.measure(ann, "weight", c.noon(2), 70)
	c.server.change(func(s *ehrServer) { s.refuse = refusing(77) })
	p := c.pipeline()
	c.push()
	require.Len(t, c.letters(p), 1)
	c.measure(ann, "weight", c.noon(1), 71)
	c.push()
	require.Empty(t, c.letters(p))
	c.agree(ann)
}

// A report goes on without a result that is refused, which it names by its identifier.
func TestPush_reportIsSentWithoutARefusedResult(t *testing.T) {
	c := newClinic(t)
	ann := c.person("ann")
	c.order(ann)
	refused := 0
	c.server.change(func(s *ehrServer) {
		s.refuse = func(r object) bool {
			if r["resourceType"] != "Observation" || r["status"] == "cancelled" || refused != 0 && refused != len(text(r["code"].(object)["text"])) {
				return false
			}
			refused = len(text(r["code"].(object)["text"])) // those of one length
			return true
		}
	})
	p := c.pipeline()
	c.push()
	require.NotEmpty(t, c.letters(p))
	require.Len(t, c.server.of("DiagnosticReport", base+"/DiagnosticReport"), 1)
	c.server.change(func(s *ehrServer) { s.refuse = nil })
	_, err := c.pipelines.Replay(t.Context(), c.team, p.ID, nil)
	require.NoError(t, err)
	c.push()
	require.Empty(t, c.letters(p))
}

// A person whom the server refuses is one dead letter, and everything of the person when it is replayed.
func TestPush_refusedPatientIsOneDeadLetterAndReplayable(t *testing.T) {
	c := newClinic(t)
	ann, ben := c.person("ann"), c.person("ben")
	for d := range 40 {
		c.measure(ann, "heartrate", c.noon(d+1), 60)
		c.measure(ben, "heartrate", c.noon(d+1), 61)
	}
	c.server.change(func(s *ehrServer) {
		s.refuse = func(r object) bool {
			return r["resourceType"] == "Patient" && strings.Contains(strings.Join(identifiers(r), " "), ann.String())
		}
	})
	p := c.pipeline()
	c.push()
	letters := c.letters(p)
	require.Len(t, letters, 1)
	require.Equal(t, "Patient", letters[0].ResourceType)
	c.agree(ben)
	c.server.change(func(s *ehrServer) { s.refuse = nil })
	_, err := c.pipelines.Replay(t.Context(), c.team, p.ID, nil)
	require.NoError(t, err)
	c.push()
	require.Empty(t, c.letters(p))
	c.agree(ann, ben)
}

// A pipeline that creates no Patients refers to those that the server has, and stops at a person whom it has not.
func TestPush_matchPatientsOnlyReferencesExistingPatients(t *testing.T) {
	c := newClinic(t)
	ann, ben := c.person("mrn,1"), c.person("mrn|2")
	for d := range 60 {
		c.measure(ann, "heartrate", c.noon(d+1), 60)
		c.measure(ben, "heartrate", c.noon(d+1), 61)
	}
	c.server.change(func(s *ehrServer) {
		own := object{"resourceType": "Patient", "identifier": []any{object{"system": "urn:mrn", "value": `mrn\,1`}}}
		s.all = append(s.all, &stored{kind: "Patient", id: "theirs", versions: []object{own}})
	})
	p := c.pipeline(func(n *ehr.NewPipeline) { n.MatchPatientsOnly, n.PatientSystem = true, "urn:mrn" })
	c.push()
	have := c.server.of("Observation", base+"/Observation")
	require.Len(t, have, 60)
	for _, r := range have {
		require.Equal(t, "Patient/theirs", r.last()["subject"].(object)["reference"])
	}
	letters := c.letters(p)
	require.LessOrEqual(t, len(letters), 21)
	patients := 0
	for _, l := range letters {
		require.Equal(t, ben, l.User)
		if l.ResourceType == "Patient" {
			patients++
		}
	}
	require.Equal(t, 1, patients)
}

// A server that does not answer holds one row a person, whatever changes meanwhile.
func TestPush_unreachableServerQueuesOneRowPerPerson(t *testing.T) {
	c := newClinic(t)
	ann := c.person("ann")
	p := c.pipeline()
	c.push()
	what := unavailable
	c.server.change(func(s *ehrServer) { s.next = func(object) fault { return what } })
	queue := func() (n, bytes int) {
		for _, r := range c.store.Kept() {
			if r.Table == "ehr_task" {
				n, bytes = n+1, bytes+len(r.Doc)
			}
		}
		return n, bytes
	}
	c.measure(ann, "weight", c.noon(1), 70)
	rows, size := queue()
	for i := range 100 {
		c.measure(ann, "weight", c.noon(1+i%50), 70+float64(i))
		if i%10 == 0 {
			c.push()
			c.clock.pass(time.Minute)
		}
	}
	after, grown := queue()
	require.Equal(t, rows, after)
	require.Less(t, grown, size+100)
	st, err := c.pipelines.State(t.Context(), c.team, p.ID)
	require.NoError(t, err)
	require.Equal(t, "the server answers the transaction with HTTP status 503", st.LastError)
	require.Equal(t, 1, st.Waiting)

	// What the server asks for is kept.
	c.clock.pass(time.Hour)
	what = busy
	c.server.change(func(*ehrServer) {})
	c.push()
	st, err = c.pipelines.State(t.Context(), c.team, p.ID)
	require.NoError(t, err)
	require.False(t, st.PausedUntil.Before(c.clock.now().Add(7*time.Second)))
	c.server.change(func(s *ehrServer) { s.next = nil })
	c.settle(p)
	c.agree(ann)
	st, err = c.pipelines.State(t.Context(), c.team, p.ID)
	require.NoError(t, err)
	require.Empty(t, st.LastError)
	require.Zero(t, st.PausedUntil)
}

// The default client reaches no private address.
func TestPush_defaultClientRefusesPrivateAddresses(t *testing.T) {
	c := newClinic(t, func(o *push.Options) { o.Client = nil })
	c.person("ann")
	p := c.pipeline()
	c.measure(c.person("ben"), "weight", c.noon(1), 70)
	c.push()
	requests, _ := c.server.count()
	require.Zero(t, requests)
	st, err := c.pipelines.State(t.Context(), c.team, p.ID)
	require.NoError(t, err)
	require.NotEmpty(t, st.LastError)
}

// A disabled pipeline sends nothing and loses nothing; a deleted one leaves no row; of a deleted person nothing is
// sent.
func TestPush_disabledPipelinePausesAndDeletedOneLeavesNoRow(t *testing.T) {
	c := newClinic(t)
	ann, ben := c.person("ann"), c.person("ben")
	p := c.pipeline()
	off, on := ehr.Disabled, ehr.Active
	_, err := c.pipelines.Update(t.Context(), c.team, p.ID, ehr.Patch{Status: &off})
	require.NoError(t, err)
	c.measure(ann, "weight", c.noon(1), 70)
	c.measure(ben, "weight", c.noon(1), 70)
	c.push()
	requests, _ := c.server.count()
	require.Zero(t, requests)
	require.NoError(t, c.s.Health.Deletions().Delete(t.Context(), c.team, ben))
	_, err = c.pipelines.Update(t.Context(), c.team, p.ID, ehr.Patch{Status: &on})
	require.NoError(t, err)
	c.clock.pass(2 * time.Minute)
	c.push()
	c.agree(ann)

	require.NoError(t, c.pipelines.Delete(t.Context(), c.team, p.ID))
	c.measure(ann, "weight", c.noon(2), 70)
	c.push()
	for _, r := range c.store.Kept() {
		require.False(t, strings.HasPrefix(r.Table, "ehr_"), r.Table)
	}
}
