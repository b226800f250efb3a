package receiver_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

func secret(t testing.TB, fill byte) webhook.Secret {
	t.Helper()
	s, err := webhook.GenerateSecret(repeated(fill))
	require.NoError(t, err)
	return s
}

type repeated byte

func (r repeated) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r)
	}
	return len(b), nil
}

// fixture is a receiver with a clock of its own, and words for what tests do with it.
type fixture struct {
	*receiver.Receiver
	t      testing.TB
	secret webhook.Secret
	now    time.Time
}

func newFixture(t testing.TB, opts receiver.Options) *fixture {
	t.Helper()
	d := &fixture{t: t, secret: secret(t, 1), now: time.Now()}
	if opts.Now == nil {
		opts.Now = func() time.Time { return d.now }
	}
	var err error
	d.Receiver, err = receiver.New([]webhook.Secret{d.secret}, memory.NewSeen(nil), &opts)
	require.NoError(t, err)
	return d
}

func (d *fixture) send(id string, body []byte) (receiver.Outcome, error) {
	h := http.Header{}
	webhook.SetSignature(h, id, d.now, body, d.secret)
	return d.Receive(d.t.Context(), body, h)
}

func (d *fixture) gets(want receiver.Outcome, id string, body []byte) {
	d.t.Helper()
	got, err := d.send(id, body)
	require.NoError(d.t, err)
	require.Equal(d.t, want, got)
}

func sleepAt(minute int) *healthdata.Sleep {
	s := (&filler{}).of(dataType(healthlab.EventType{Data: healthdata.Sleep{}})).(*healthdata.Sleep)
	s.UpdatedAt = healthlab.At(time.Date(2026, 3, 1, 7, minute, 0, 0, time.UTC))
	s.Total = new(int64(minute))
	return s
}

func orderAt(event int64, minute int) *orders.Order {
	return &orders.Order{
		ID: orders.OrderID{UUID: uuid.NewSHA1(uuid.Nil, []byte("order"))}, TeamID: team, UserID: ann,
		LastEvent: orders.OrderEvent{ID: event},
		UpdatedAt: healthlab.At(time.Date(2026, 3, 1, 7, minute, 0, 0, time.UTC)),
	}
}

const (
	sleepCreated = "daily.data.sleep.created"
	sleepUpdated = "daily.data.sleep.updated"
	stepsCreated = "daily.data.steps.created"
	orderCreated = "labtest.order.created"
	orderUpdated = "labtest.order.updated"
)

func TestReceive_appliesAMessageOnce(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	var got []receiver.Event
	receiver.On(d.Receiver, func(_ context.Context, e receiver.Event, s *healthdata.Sleep) error {
		require.Same(t, e.Value, s)
		got = append(got, e)
		return nil
	})
	body := render(t, sleepCreated, sleepAt(1), 0)
	d.gets(receiver.Applied, "msg_1", body)
	d.gets(receiver.Duplicate, "msg_1", body)
	require.Len(t, got, 1)
	require.Equal(t, "msg_1", got[0].ID)
	require.Equal(t, receiver.Name{Family: "daily", Resource: "sleep", Verb: "created"}, got[0].Name)
	require.Equal(t, d.now.Unix(), got[0].Sent.Unix())
	require.Equal(t, team, got[0].Team)
	require.Equal(t, ann, got[0].User)
}

func TestReceive_olderSummaryIsStale(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	var totals []int64
	receiver.On(d.Receiver, func(_ context.Context, _ receiver.Event, s *healthdata.Sleep) error {
		totals = append(totals, *s.Total)
		return nil
	})
	d.gets(receiver.Applied, "msg_2", render(t, sleepUpdated, sleepAt(2), 0))
	d.gets(receiver.Stale, "msg_1", render(t, sleepCreated, sleepAt(1), 0))
	d.gets(receiver.Applied, "msg_2b", render(t, sleepCreated, sleepAt(2), 0)) // sent again on purpose
	d.gets(receiver.Applied, "msg_3", render(t, sleepCreated, sleepAt(3), 0))
	require.Equal(t, []int64{2, 2, 3}, totals)

	other := sleepAt(1)
	other.ID = uuid.New()
	d.gets(receiver.Applied, "msg_4", render(t, sleepCreated, other, 0))
}

// A receiver for several teams keeps what they have apart.
func TestReceive_versionsOfTeamsAreSeparate(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error { return nil })
	other := []byte(strings.Replace(string(render(t, sleepCreated, sleepAt(1), 0)), team.String(), uuid.NewString(), 1))
	d.gets(receiver.Applied, "msg_2", render(t, sleepCreated, sleepAt(2), 0))
	d.gets(receiver.Applied, "msg_1", other)
}

// The sequence decides which version is newer if the sender's clock went back between two
// versions.
func TestReceive_sequenceNumberPrecedesTheTimestamp(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error { return nil })
	d.gets(receiver.Applied, "msg_1", render(t, sleepCreated, sleepAt(30), 1))
	d.gets(receiver.Applied, "msg_2", render(t, sleepCreated, sleepAt(20), 2))
	d.gets(receiver.Stale, "msg_1b", render(t, sleepCreated, sleepAt(30), 1))
}

func TestReceive_olderOrderIsStale(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	var events []int64
	receiver.On(d.Receiver, func(_ context.Context, _ receiver.Event, o *orders.Order) error {
		events = append(events, o.LastEvent.ID)
		return nil
	})
	d.gets(receiver.Applied, "msg_1", render(t, orderCreated, orderAt(11, 1), 0))
	d.gets(receiver.Applied, "msg_3", render(t, orderUpdated, orderAt(13, 3), 0))
	d.gets(receiver.Stale, "msg_2", render(t, orderUpdated, orderAt(12, 9), 0))
	d.gets(receiver.Stale, "msg_2b", render(t, orderUpdated, orderAt(13, 2), 0))
	d.gets(receiver.Applied, "msg_4", render(t, orderUpdated, orderAt(13, 4), 0)) // a correction without an event
	require.Equal(t, []int64{11, 13, 13}, events)
}

func TestReceive_olderAppointmentOrReviewIsStale(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *orders.Appointment) error { return nil })
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *exchange.MatchReviewNotice) error { return nil })
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.ConnectionCreated) error { return nil })
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.ConnectionFailed) error { return nil })
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.ConnectionDeleted) error { return nil })
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.StreamNotice) error { return nil })
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Device) error { return nil })
	appointment := func(minutes ...int) *orders.Appointment {
		a := &orders.Appointment{ID: uuid.NewSHA1(uuid.Nil, []byte("visit"))}
		for _, m := range minutes {
			a.Events = append(a.Events, orders.AppointmentEvent{CreatedAt: healthlab.At(time.Date(2026, 3, 1, 7, m, 0, 0, time.UTC))})
		}
		return a
	}
	const name = "labtest.appointment.updated"
	d.gets(receiver.Applied, "msg_2", render(t, name, appointment(1, 2), 0))
	d.gets(receiver.Stale, "msg_1", render(t, name, appointment(1), 0))
	d.gets(receiver.Applied, "msg_3", render(t, name, appointment(1, 2, 3), 0))

	// What does not say how new it is goes by the sequence, or is always applied.
	link, failed := healthdata.ConnectionCreated{UserID: ann, Provider: healthdata.ProviderName{Slug: "acme_ring"}}, healthdata.ConnectionFailed{UserID: ann, Provider: "acme_ring"}
	for _, tt := range []struct {
		name     string
		old, new any
		types    [2]string
	}{
		{"review", exchange.MatchReviewNotice{ID: uuid.UUID{1}}, exchange.MatchReviewNotice{ID: uuid.UUID{1}}, [2]string{"labtest.match_review.created", "labtest.match_review.updated"}},
		{"connection", failed, link, [2]string{"provider.connection.error", "provider.connection.created"}},
		{"removal", healthdata.ConnectionCreated{UserID: ann, Provider: healthdata.ProviderName{Slug: "acme_band"}},
			healthdata.ConnectionDeleted{UserID: ann, Provider: healthdata.ProviderName{Slug: "acme_band"}},
			[2]string{"provider.connection.created", "provider.connection.deleted"}},
		{"device", healthdata.Device{ID: uuid.UUID{3}}, healthdata.Device{ID: uuid.UUID{3}}, [2]string{"provider.device.created", "provider.device.updated"}},
		{"stream", healthdata.StreamNotice{WorkoutID: uuid.UUID{2}}, healthdata.StreamNotice{WorkoutID: uuid.UUID{2}}, [2]string{"daily.data.workout_stream.created", "daily.data.workout_stream.created"}},
	} {
		d.gets(receiver.Applied, tt.name+"2", render(t, tt.types[1], tt.new, 2))
		d.gets(receiver.Stale, tt.name+"1", render(t, tt.types[0], tt.old, 1))
		d.gets(receiver.Applied, tt.name+"3", render(t, tt.types[0], tt.old, 0))
	}
}

// A late event does not move a parsing job to an earlier status.
func TestReceive_olderParsingJobIsStale(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	var got []labreport.Status
	receiver.On(d.Receiver, func(_ context.Context, _ receiver.Event, j *labreport.PublishedJob) error {
		got = append(got, j.Status)
		return nil
	})
	const created, updated = "lab_report.parsing_job.created", "lab_report.parsing_job.updated"
	job := func(n byte, s labreport.Status) labreport.PublishedJob {
		return labreport.PublishedJob{ID: labreport.JobID{UUID: uuid.UUID{n}}, Status: s}
	}
	d.gets(receiver.Applied, "msg_2", render(t, updated, job(1, labreport.PendingReview), 0))
	d.gets(receiver.Stale, "msg_1", render(t, created, job(1, labreport.Started), 0))
	d.gets(receiver.Applied, "msg_3", render(t, updated, job(1, labreport.Completed), 0))
	d.gets(receiver.Stale, "msg_2b", render(t, updated, job(1, labreport.PendingReview), 0))
	d.gets(receiver.Applied, "msg_4", render(t, created, job(2, labreport.Started), 0))
	d.gets(receiver.Applied, "msg_5", render(t, updated, job(2, labreport.Failed), 0))
	require.Equal(t, []labreport.Status{labreport.PendingReview, labreport.Completed, labreport.Started, labreport.Failed}, got)
}

func TestReceive_batchesAreAppliedInAnyOrder(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	n := 0
	receiver.On(d.Receiver, func(_ context.Context, e receiver.Event, _ *healthdata.Batch) error {
		require.Equal(t, "steps", e.Name.Resource)
		n++
		return nil
	})
	batch := healthdata.Batch{UserID: ann, Data: []healthdata.Sample{}}
	for _, seq := range []int64{3, 1, 2, 0} {
		d.gets(receiver.Applied, "msg_"+strconv.FormatInt(seq, 10), render(t, stepsCreated, batch, seq))
	}
	require.Equal(t, 4, n)
}

// A message without a function for its type is ignored, or passed to OnOther.
func TestReceive_messageWithoutAFunctionIsIgnored(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	unknown := render(t, "garden.rose.opened", object{"petals": 12}, 0)
	d.gets(receiver.Ignored, "msg_1", unknown)
	d.gets(receiver.Ignored, "msg_2", render(t, sleepCreated, sleepAt(1), 0))

	var got []receiver.Event
	d.OnOther(func(_ context.Context, e receiver.Event) error {
		got = append(got, e)
		return nil
	})
	d.gets(receiver.Applied, "msg_1", unknown)
	d.gets(receiver.Duplicate, "msg_1", unknown)
	d.gets(receiver.Applied, "msg_2", render(t, sleepCreated, sleepAt(1), 0))
	d.gets(receiver.Stale, "msg_3", render(t, sleepCreated, sleepAt(0), 0))
	require.Len(t, got, 2)
	require.Nil(t, got[0].Value)
	require.JSONEq(t, `{"petals":12}`, string(got[0].Data))
	require.IsType(t, &healthdata.Sleep{}, got[1].Value)
}

func TestReceive_decodesEventTypesOfTheHost(t *testing.T) {
	type rose struct {
		Petals int `json:"petals"`
	}
	d := newFixture(t, receiver.Options{Types: []healthlab.EventType{{Name: "garden.rose.opened", Data: rose{}}}})
	petals := 0
	receiver.On(d.Receiver, func(_ context.Context, _ receiver.Event, r *rose) error {
		petals = r.Petals
		return nil
	})
	d.gets(receiver.Applied, "msg_1", render(t, "garden.rose.opened", rose{12}, 0))
	require.Equal(t, 12, petals)
}

func TestReceive_testMessageIsNotApplied(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error {
		require.Fail(t, "a made-up sleep was applied")
		return nil
	})
	body := render(t, sleepCreated, object{}, 0)
	id := "msg_test" + webhook.MessageID(uuid.New())[4:]
	d.gets(receiver.Tested, id, body)
	n := 0
	d.OnTest(func(_ context.Context, e receiver.Event) error {
		require.True(t, e.IsTest())
		n++
		return nil
	})
	d.gets(receiver.Tested, id, body)
	require.Equal(t, 1, n)

	// An ordinary id may begin with the same letters.
	e := receiver.Event{ID: "msg_test" + webhook.MessageID(uuid.New())[8:]}
	require.False(t, e.IsTest())
}

func TestReceive_failedMessageIsAppliedWhenResent(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	full, n := errors.New("the disk is full"), 0
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error {
		n++
		if n < 3 {
			return full
		}
		return nil
	})
	body := render(t, sleepCreated, sleepAt(2), 0)
	for range 2 {
		_, err := d.send("msg_1", body)
		var failed *receiver.ApplyError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, full)
	}
	// A version that was not applied makes nothing stale.
	d.gets(receiver.Applied, "msg_0", render(t, sleepCreated, sleepAt(1), 0))
	d.gets(receiver.Applied, "msg_1", body)
}

func TestReceive_messageThatPanickedIsAppliedWhenResent(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	n := 0
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error {
		if n++; n == 1 {
			panic("oh")
		}
		return nil
	})
	body := render(t, sleepCreated, sleepAt(2), 0)
	require.PanicsWithValue(t, "oh", func() { _, _ = d.send("msg_1", body) })
	d.gets(receiver.Applied, "msg_1", body)
}

// crashing is a memory that cannot be told what was done.
type crashing struct{ receiver.Seen }

func (crashing) Done(context.Context, receiver.Claim) error { return healthlab.Unavailable }

// After a crash between applying and marking, the message is applied again and not lost.
func TestReceive_crashBeforeMarkingAppliesTheMessageAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := memory.NewSeen(nil)
		key, n := secret(t, 1), 0
		open := func(s receiver.Seen) *fixture {
			r, err := receiver.New([]webhook.Secret{key}, s, nil)
			require.NoError(t, err)
			receiver.On(r, func(context.Context, receiver.Event, *healthdata.Sleep) error { n++; return nil })
			return &fixture{Receiver: r, t: t, secret: key, now: time.Now()}
		}
		body := render(t, sleepCreated, sleepAt(1), 0)
		_, err := open(crashing{seen}).send("msg_1", body)
		require.ErrorIs(t, err, healthlab.Unavailable)
		time.Sleep(30 * time.Second) // the lease of the one that crashed
		d := open(seen)
		d.gets(receiver.Applied, "msg_1", body)
		d.gets(receiver.Duplicate, "msg_1", body)
		require.Equal(t, 2, n)
	})
}

func TestReceive_concurrentCopiesAreAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, receiver.Options{})
		var running, n atomic.Int32
		receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error {
			require.EqualValues(t, 1, running.Add(1))
			time.Sleep(time.Second)
			running.Add(-1)
			n.Add(1)
			return nil
		})
		body := render(t, sleepCreated, sleepAt(1), 0)
		outcomes := make(chan receiver.Outcome, 8)
		var wg sync.WaitGroup
		for range cap(outcomes) {
			wg.Go(func() {
				o, err := d.send("msg_1", body)
				require.NoError(t, err)
				outcomes <- o
			})
		}
		wg.Wait()
		close(outcomes)
		got := map[receiver.Outcome]int{}
		for o := range outcomes {
			got[o]++
		}
		require.Equal(t, map[receiver.Outcome]int{receiver.Applied: 1, receiver.Duplicate: 7}, got)
		require.EqualValues(t, 1, n.Load())
	})
}

// Versions of one thing that arrive at once are applied one after another, and the
// newest is the last.
func TestReceive_concurrentVersionsAreAppliedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, receiver.Options{Wait: time.Minute})
		var last atomic.Int64
		var running atomic.Int32
		receiver.On(d.Receiver, func(_ context.Context, _ receiver.Event, s *healthdata.Sleep) error {
			require.EqualValues(t, 1, running.Add(1))
			time.Sleep(50 * time.Millisecond)
			require.Less(t, last.Swap(*s.Total), *s.Total)
			running.Add(-1)
			return nil
		})
		var wg sync.WaitGroup
		for minute := range 12 {
			body := render(t, sleepCreated, sleepAt(minute+1), 0)
			wg.Go(func() {
				_, err := d.send("msg_"+strconv.Itoa(minute), body)
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.EqualValues(t, 12, last.Load())
	})
}

func TestReceive_waitForAConcurrentMessageEndsWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, receiver.Options{})
		receiver.On(d.Receiver, func(ctx context.Context, _ receiver.Event, _ *healthdata.Sleep) error {
			<-ctx.Done()
			return ctx.Err()
		})
		body := render(t, sleepCreated, sleepAt(1), 0)
		first := make(chan error)
		go func() {
			_, err := d.send("msg_1", body)
			first <- err
		}()
		synctest.Wait()
		_, err := d.send("msg_1", body)
		require.ErrorIs(t, err, healthlab.Conflict)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h := http.Header{}
		webhook.SetSignature(h, "msg_1", d.now, body, d.secret)
		_, err = d.Receive(ctx, body, h)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		err = <-first // after ten seconds
		var failed *receiver.ApplyError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// What was applied is marked although the sender has hung up.
func TestReceive_appliedMessageIsMarkedIfTheSenderHangsUp(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	ctx, hangUp := context.WithCancel(t.Context())
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error {
		hangUp()
		return nil
	})
	body := render(t, sleepCreated, sleepAt(1), 0)
	h := http.Header{}
	webhook.SetSignature(h, "msg_1", d.now, body, d.secret)
	o, err := d.Receive(ctx, body, h)
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, o)
	d.gets(receiver.Duplicate, "msg_1", body)
}

func TestReceive_decodesNothingWithoutAValidSignature(t *testing.T) {
	var faults []error
	d := newFixture(t, receiver.Options{Observe: func(_ context.Context, e receiver.Event, o receiver.Outcome, err error) {
		require.Zero(t, e)
		require.Empty(t, o)
		faults = append(faults, err)
	}})
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error {
		require.Fail(t, "a forgery was applied")
		return nil
	})
	body := render(t, sleepCreated, sleepAt(1), 0)
	for _, tt := range []struct {
		want webhook.VerifyReason
		sign func(h http.Header)
	}{
		{webhook.MissingHeader, func(http.Header) {}},
		{webhook.NoMatchingSignature, func(h http.Header) { webhook.SetSignature(h, "msg_1", d.now, body, secret(t, 9)) }},
		{webhook.NoMatchingSignature, func(h http.Header) {
			webhook.SetSignature(h, "msg_1", d.now, append([]byte(" "), body...), d.secret)
		}},
		{webhook.NoMatchingSignature, func(h http.Header) {
			webhook.SetSignature(h, "msg_1", d.now, body, d.secret)
			h.Set(webhook.HeaderID, "msg_2")
		}},
		{webhook.TimestampTooOld, func(h http.Header) { webhook.SetSignature(h, "msg_1", d.now.Add(-6*time.Minute), body, d.secret) }},
	} {
		h := http.Header{}
		tt.sign(h)
		_, err := d.Receive(t.Context(), body, h)
		var fault *webhook.VerifyError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, tt.want, fault.Reason)
	}
	require.Len(t, faults, 5)
}

func TestReceive_acceptsSignaturesOfOldAndNewSecrets(t *testing.T) {
	old, fresh := secret(t, 1), secret(t, 2)
	r, err := receiver.New([]webhook.Secret{fresh, old}, memory.NewSeen(nil), nil)
	require.NoError(t, err)
	r.OnOther(func(context.Context, receiver.Event) error { return nil })
	for i, signers := range [][]webhook.Secret{{old}, {fresh}, {fresh, old}, {secret(t, 3), old}} {
		body, h := render(t, stepsCreated, object{}, 0), http.Header{}
		webhook.SetSignature(h, "msg_"+strconv.Itoa(i), time.Now(), body, signers...)
		o, err := r.Receive(t.Context(), body, h)
		require.NoError(t, err)
		require.Equal(t, receiver.Applied, o)
	}
}

// Apply takes messages from a queue, which need no signature and have the queue's id.
func TestApply_acceptsQueueMessagesByTheirIDOnce(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	n := 0
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error { n++; return nil })
	e, err := receiver.Decode(render(t, sleepCreated, sleepAt(1), 0))
	require.NoError(t, err)
	for _, id := range []string{"", "a\x00b", string(make([]byte, 256))} {
		e.ID = id
		_, err = d.Apply(t.Context(), e)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	e.ID = "stream-1:17"
	for _, want := range []receiver.Outcome{receiver.Applied, receiver.Duplicate} {
		o, err := d.Apply(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, want, o)
	}
	require.Equal(t, 1, n)
}

func TestNew_requiresSecretsAndASeenStore(t *testing.T) {
	for _, tt := range []struct {
		name    string
		secrets []webhook.Secret
		seen    receiver.Seen
	}{
		{"no secret", nil, memory.NewSeen(nil)},
		{"an empty secret", []webhook.Secret{secret(t, 1), {}}, memory.NewSeen(nil)},
		{"no memory", []webhook.Secret{secret(t, 1)}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := receiver.New(tt.secrets, tt.seen, nil)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}

func TestOn_panicsForUnknownAndRepeatedTypes(t *testing.T) {
	d := newFixture(t, receiver.Options{})
	require.Panics(t, func() { receiver.On(d.Receiver, func(context.Context, receiver.Event, *string) error { return nil }) })
	sleep := func(context.Context, receiver.Event, *healthdata.Sleep) error { return nil }
	receiver.On(d.Receiver, sleep)
	require.Panics(t, func() { receiver.On(d.Receiver, sleep) })
}
