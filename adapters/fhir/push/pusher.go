package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Options adjusts a [Pusher]. The zero value, and nil, mean the defaults.
type Options struct {
	// Client sends requests to FHIR servers and token endpoints, whose addresses teams choose. Default:
	// webhook.NewClient with Timeout, which connects only to public addresses.
	Client *http.Client
	// Timeout is the longest duration of one request. Default 30 s.
	Timeout time.Duration
	// Workers is the number of persons that are pushed concurrently. Default 2.
	Workers int
	// Entries is the largest number of resources of a transaction. Default 100.
	Entries int
	// Idle is how long Run waits, plus or minus a quarter, before it looks again after fewer persons than free workers
	// were due. Default 1 s.
	Idle time.Duration
	// Wake ends the wait of Idle early. The channel should have a buffer of one.
	Wake <-chan struct{}
	// Accessed is called before the data of a person is read, to record the access. If it fails, nothing is read and
	// the person is tried again. Nil: nothing is recorded.
	Accessed func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of assertions. Default: UUID version 4.
	NewID func() uuid.UUID
	// Log receives errors that have no caller. Default slog.Default().
	Log *slog.Logger
}

// Pusher pushes the data of persons to the pipelines of their team. It is safe for concurrent use, and any number of
// processes may run one on the same store.
type Pusher struct {
	pipelines *ehr.Service
	reader    *fhir.Reader
	client    *client
	opts      Options
	lease     time.Duration
}

// New returns a Pusher. pipelines and reader are required; without them it returns healthlab.Invalid. It starts no
// goroutine.
func New(pipelines *ehr.Service, reader *fhir.Reader, opts *Options) (*Pusher, error) {
	if pipelines == nil || reader == nil {
		return nil, fmt.Errorf("%w: push.New: pipelines and reader must not be nil", healthlab.Invalid)
	}
	p := &Pusher{pipelines: pipelines, reader: reader}
	if opts != nil {
		p.opts = *opts
	}
	o := &p.opts
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Client == nil {
		o.Client = webhook.NewClient(&webhook.ClientOptions{Timeout: o.Timeout})
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Entries <= 0 {
		o.Entries = 100
	}
	if o.Accessed == nil {
		o.Accessed = func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.New
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	// Getting a token takes two requests; then the transaction is sent, twice if the token is not accepted.
	p.lease = 6*o.Timeout + time.Minute
	p.client = &client{http: o.Client, pipelines: pipelines, now: o.Now, newID: o.NewID, tokens: map[ehr.PipelineID]token{}}
	return p, nil
}

func backoff(step int) time.Duration {
	return min(10*time.Second<<min(max(step-1, 0), 10), 15*time.Minute)
}

// Run pushes the persons whose data has changed until ctx ends.
func (p *Pusher) Run(ctx context.Context) error {
	loop := work.Loop[ehr.Task]{
		Name: "FHIR servers", Workers: p.opts.Workers, Idle: p.opts.Idle, Wake: p.opts.Wake, Log: p.opts.Log, Claim: p.Claim, Do: p.Do,
	}
	if err := loop.Run(ctx); err != nil {
		return fmt.Errorf("run pushes: %w", err)
	}
	return nil
}

// sweeps is the largest number of batches of persons that one Claim marks to be pushed again.
const sweeps = 5

// Claim leases at most n persons who are due to be pushed. It is a step of Run, for hosts that have their own loop.
func (p *Pusher) Claim(ctx context.Context, n int) ([]ehr.Task, error) {
	rows := p.pipelines.Rows()
	for range sweeps {
		more, err := rows.Sweep(ctx)
		if err != nil {
			return nil, fmt.Errorf("claim people to push: %w", err)
		}
		if !more {
			break
		}
	}
	list, err := rows.Claim(ctx, n, p.lease)
	if err != nil {
		return nil, fmt.Errorf("claim people to push: %w", err)
	}
	return list, nil
}

// Do pushes one claimed person. After an error the person is tried again.
func (p *Pusher) Do(ctx context.Context, t ehr.Task) error {
	rows := p.pipelines.Rows()
	err := p.push(ctx, &t)
	var hold *holdError
	var conflict *conflictError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, healthlab.Precondition):
		return nil // another worker has the person, or the person was deleted
	case errors.As(err, &hold):
		err = rows.Hold(ctx, &t, hold.reason, func(step int) time.Duration { return max(hold.after, backoff(step)) })
	case errors.As(err, &conflict):
		err = rows.Conflict(ctx, &t, backoff(t.Try))
	default:
		wait := backoff(t.Try)
		if ctx.Err() != nil {
			wait = 0
		}
		return errors.Join(err, rows.Delay(context.WithoutCancel(ctx), &t, wait))
	}
	if err != nil && !errors.Is(err, healthlab.Precondition) {
		return fmt.Errorf("postpone push of person: %w", err)
	}
	return nil
}

// mostConflicts is the number of consecutive conflicts after which a conflict counts as a refusal. Another failure
// resets the count.
const mostConflicts = 10

// mostRefusals is the number of refused resources in one push after which the server is considered to refuse the
// person, if it has accepted none.
const mostRefusals = 20

// run is one push of a person.
type run struct {
	*Pusher
	task    *ehr.Task
	names   names
	patient *item // sent with every transaction; nil if the pipeline creates no Patients
	has     map[string]bool
	// Number of refusals before the first accepted resource.
	refusals int
	taken    bool
	// known is true if the server has accepted the Patient. noted is true if that acceptance is stored.
	known, noted bool
	// later maps the subjects whose resources change status without new data to the spans of these resources. at is the
	// time of the earliest such change.
	later map[string]ehr.Span
	at    time.Time
}

// errPerson says that the server refuses the Patient or the first mostRefusals resources of a person.
var errPerson = errors.New("the server refuses the Patient, or the first resources of the person")

func (p *Pusher) push(ctx context.Context, t *ehr.Task) error {
	if err := p.opts.Accessed(ctx, t.Pipeline.Team, t.User); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	person, name, err := p.reader.Person(ctx, t.Pipeline.Team, t.User)
	if errors.Is(err, healthlab.NotFound) {
		return p.pipelines.Rows().Finish(ctx, t, nil, time.Time{})
	}
	if err != nil {
		return fmt.Errorf("read person: %w", err)
	}
	r := &run{Pusher: p, task: t, names: names{url: p.reader.URL(), patient: ehr.SentKey(person.Type, person.ID)}, has: map[string]bool{}, later: map[string]ehr.Span{}}
	r.names.own = identifier{p.reader.URL() + "/Patient", person.ID}
	if t.Pipeline.PatientSystem != "" {
		r.names.own = identifier{t.Pipeline.PatientSystem, name}
	}
	if t.Pipeline.CreatePatients {
		r.patient = &item{person, ehr.Result{Subject: personSubject, Type: person.Type, ID: person.ID, Version: person.Version, Span: aggregate.Always}}
	}
	err = r.pushSubjects(ctx)
	if errors.Is(err, errPerson) {
		err = nil // replaying the dead letter marks everything of the person
	}
	if err != nil {
		return err
	}
	return p.pipelines.Rows().Finish(ctx, t, r.later, r.at)
}

// personSubject is the subject of a refused Patient. If it is marked as changed, everything of the person is pushed.
const personSubject = "person"

// pushSubjects pushes the data of all subjects that the task marks as changed.
func (r *run) pushSubjects(ctx context.Context) error {
	marks := maps.Clone(r.task.Marks)
	p := &r.task.Pipeline
	if _, ok := marks[personSubject]; ok {
		for _, slug := range p.Resources {
			marks[ehr.DataSubject+slug] = aggregate.Always
		}
		if p.Orders {
			marks[ehr.AllOrders] = aggregate.Always
		}
		if p.Queries {
			marks[ehr.AllQueries] = aggregate.Always
		}
	}
	if _, ok := marks[ehr.AllQueries]; ok {
		list, err := r.reader.Queries(ctx, p.Team)
		if err != nil {
			return err
		}
		for _, id := range list {
			marks[ehr.QuerySubject+id.String()] = aggregate.Always
		}
	}
	if _, ok := marks[ehr.AllOrders]; ok {
		list, err := r.reader.Orders(ctx, p.Team, r.task.User)
		if err != nil {
			return err
		}
		for _, id := range list {
			marks[ehr.OrderSubject+id.String()] = aggregate.Always
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(marks)) {
		var err error
		if slug, ok := strings.CutPrefix(subject, ehr.DataSubject); ok && slices.Contains(p.Resources, slug) {
			err = r.pushObservations(ctx, subject, slug, marks[subject])
		} else if id, ok := strings.CutPrefix(subject, ehr.OrderSubject); ok && p.Orders {
			err = r.order(ctx, subject, id)
		} else if id, ok := strings.CutPrefix(subject, ehr.QuerySubject); ok && p.Queries {
			err = r.pushRows(ctx, subject, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// margin is the number of days that are read before and after the days of a change. Time zones, and sessions over
	// midnight, can move its effect to another day.
	margin = 2
	// window is the number of days that are read at once.
	window = 366
)

// pushObservations pushes the observations that are made from the health data of a slug.
func (r *run) pushObservations(ctx context.Context, subject, slug string, span ehr.Span) error {
	first, last := r.reader.Bounds()
	day := func(micro int64) healthlab.Date { return healthlab.DateOf(time.UnixMicro(micro).UTC()) }
	if from := first.At(time.UTC).UnixMicro(); span.From > from {
		first = day(min(span.From, last.At(time.UTC).UnixMicro())).AddDays(-margin)
	}
	if to := last.At(time.UTC).UnixMicro(); span.To < to {
		last = day(max(span.To, first.At(time.UTC).UnixMicro())).AddDays(margin)
	}
	if from := r.task.Pipeline.From; from.After(first) {
		first = from
	}
	for ; !last.Before(first); first = first.AddDays(window) {
		end := first.AddDays(window - 1)
		if end.After(last) {
			end = last
		}
		list, err := r.reader.Days(ctx, r.task.Pipeline.Team, r.task.User, slug, first, end)
		if err != nil {
			return err
		}
		if err := r.compare(ctx, subject, list, first, end); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) order(ctx context.Context, subject, text string) error {
	id, err := uuid.Parse(text)
	if err != nil {
		return nil //nolint:nilerr // a mark with an id that is no order's
	}
	list, err := r.reader.Order(ctx, r.task.Pipeline.Team, r.task.User, orders.OrderID{UUID: id})
	if errors.Is(err, healthlab.NotFound) {
		list, err = nil, nil
	}
	if err != nil {
		return err
	}
	return r.compare(ctx, subject, list, healthlab.Date{}, healthlab.Date{})
}

// pushRows pushes the rows of a continuous query.
func (r *run) pushRows(ctx context.Context, subject, text string) error {
	id, err := uuid.Parse(text)
	if err != nil {
		return nil //nolint:nilerr // a mark with an id that is no query's
	}
	list, err := r.reader.Rows(ctx, r.task.Pipeline.Team, r.task.User, id)
	if errors.Is(err, healthlab.NotFound) {
		list, err = nil, nil
	}
	if err != nil {
		return err
	}
	first := r.task.Pipeline.From
	if first.IsZero() {
		first = healthlab.Date{Year: 1, Month: time.January, Day: 1}
	}
	list = slices.DeleteFunc(list, func(v fhir.Resource) bool { return v.Day.Before(first) })
	return r.compare(ctx, subject, list, first, healthlab.Date{Year: 9999, Month: time.December, Day: 31})
}

func month(d healthlab.Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()[:len("2006-01")]
}

func spanOf(d healthlab.Date) ehr.Span {
	if d.IsZero() {
		return aggregate.Always
	}
	from := d.At(time.UTC)
	return ehr.Span{From: from.UnixMicro(), To: from.AddDate(0, 0, 1).UnixMicro() - 1}
}

// compare sends the resources of a list that the server does not have in their current version, and withdraws those
// of the same days that the server has and the list lacks.
func (r *run) compare(ctx context.Context, subject string, list []fhir.Resource, first, last healthlab.Date) error {
	sent, err := r.pipelines.Rows().Sent(ctx, r.task, subject, month(first), month(last))
	if err != nil {
		return fmt.Errorf("read what was pushed: %w", err)
	}
	var items []item
	read := map[string]bool{}
	for _, v := range list {
		i := item{v, ehr.Result{Subject: subject, Month: month(v.Day), Type: v.Type, ID: v.ID, Version: v.Version, Span: spanOf(v.Day)}}
		if read[i.key()] {
			continue // already read: orders share laboratories
		}
		read[i.key()] = true
		if !v.Until.IsZero() {
			r.scheduleRetry(subject, spanOf(v.Day), v.Until)
		}
		r.has[i.key()] = r.has[i.key()] || sent.Taken(i.key())
		if !sent.Has(i.key(), v.Version) {
			items = append(items, i)
		}
	}
	for _, key := range sent.Keys() {
		kind, id, _ := strings.Cut(key, "/")
		day, within := dayOf(id, first, last)
		if read[key] || !within {
			continue
		}
		if v, ok := withdrawn(kind, id, r.names.patient); ok {
			items = append(items, item{v, ehr.Result{Subject: subject, Month: month(day), Type: kind, ID: id, Span: spanOf(day)}})
		}
	}
	for part := range slices.Chunk(items, r.opts.Entries) {
		if err := r.send(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// dayOf returns the day in the id of an observation, and whether it is from first to last. If first is zero, it returns
// a zero day and true.
func dayOf(id string, first, last healthlab.Date) (healthlab.Date, bool) {
	if first.IsZero() {
		return first, true
	}
	day, err := healthlab.ParseDate(id[max(0, len(id)-len(time.DateOnly)):])
	return day, err == nil && !day.Before(first) && !day.After(last)
}

func (r *run) scheduleRetry(subject string, span ehr.Span, at time.Time) {
	if old, ok := r.later[subject]; ok {
		span = ehr.Span{From: min(span.From, old.From), To: max(span.To, old.To)}
	}
	r.later[subject] = span
	if r.at.IsZero() || at.Before(r.at) {
		r.at = at
	}
}

// send sends items as one transaction. If the server refuses it, send sends halves until each refused item is alone.
func (r *run) send(ctx context.Context, items []item) error {
	refusals, err := r.exchange(ctx, items)
	var refused *refusedError
	var conflict *conflictError
	switch {
	case err == nil:
		return r.record(ctx, items, refusals)
	case errors.As(err, &conflict) && r.task.Conflicts >= mostConflicts:
		refused = &refusedError{conflict.refusal}
	case !errors.As(err, &refused):
		return err
	}
	if err := r.sendPatient(ctx); err != nil {
		return err
	}
	if half := len(items) / 2; half > 0 {
		if err := r.send(ctx, items[:half]); err != nil {
			return err
		}
		return r.send(ctx, items[half:])
	}
	return r.record(ctx, items, []*ehr.Refusal{&refused.refusal})
}

// sendPatient sends the Patient alone, unless the server is known to have it or the pipeline creates no Patients. A
// server that refuses the Patient cannot accept anything else of the person.
func (r *run) sendPatient(ctx context.Context) error {
	if r.patient == nil || r.known {
		return nil
	}
	refusals, err := r.exchange(ctx, nil)
	var refused *refusedError
	if errors.As(err, &refused) {
		return r.refusePerson(ctx, &refused.refusal)
	}
	if err == nil && len(refusals) > 0 {
		return r.refusePerson(ctx, refusals[0])
	}
	r.known = err == nil
	return err
}

func (r *run) refusePerson(ctx context.Context, why *ehr.Refusal) error {
	kind, id, _ := strings.Cut(r.names.patient, "/")
	v := ehr.Result{Subject: personSubject, Type: kind, ID: id, Refused: why, Span: aggregate.Always}
	if err := r.pipelines.Rows().Record(ctx, r.task, r.lease, []ehr.Result{v}); err != nil {
		return fmt.Errorf("record refusal: %w", err)
	}
	return errPerson
}

// exchange sends items and, if the pipeline creates Patients, the Patient before them. It returns for each item nil or
// the reason of its refusal. A refused Patient is a refusedError, or, without items, the only element of the result.
func (r *run) exchange(ctx context.Context, items []item) ([]*ehr.Refusal, error) {
	sending := make([]ehr.Result, len(items))
	for i := range items {
		sending[i] = items[i].result
	}
	if err := r.pipelines.Rows().Begin(ctx, r.task, r.lease, sending); err != nil {
		return nil, fmt.Errorf("record what is being sent: %w", err)
	}
	all := items
	if r.patient != nil {
		all = append([]item{*r.patient}, items...)
	}
	bundle, err := r.names.transaction(all, func(key string) bool { return r.has[key] })
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*r.opts.Timeout)
	defer cancel()
	a, err := r.client.post(ctx, &r.task.Pipeline, bundle)
	if err != nil {
		return nil, err
	}
	refusals, err := a.read(len(all))
	if err != nil || r.patient == nil {
		return refusals, err
	}
	if refusals[0] != nil {
		if len(items) == 0 {
			return refusals, nil
		}
		return nil, &refusedError{*refusals[0]}
	}
	return refusals[1:], nil
}

func (r *run) record(ctx context.Context, items []item, refusals []*ehr.Refusal) error {
	results := make([]ehr.Result, 0, len(items)+1)
	for i, refusal := range refusals {
		x := &items[i]
		result := x.result
		result.Refused = refusal
		results = append(results, result)
		if refusal != nil {
			r.refusals++
			r.opts.Log.WarnContext(ctx, "a FHIR server refuses a resource", "pipeline", &r.task.Pipeline, "type", x.Type, "status", refusal.Status, "codes", refusal.Codes)
			continue
		}
		r.taken, r.has[x.key()] = true, true
	}
	if r.patient != nil && r.taken && !r.noted {
		// The server has accepted the Patient together with the items, so the Patient is no longer a dead letter.
		r.known, r.noted = true, true
		results = append(results, r.patient.result)
	}
	if err := r.pipelines.Rows().Record(ctx, r.task, r.lease, results); err != nil {
		return fmt.Errorf("record what was pushed: %w", err)
	}
	if !r.taken && r.refusals >= mostRefusals {
		return r.refusePerson(ctx, refusals[len(refusals)-1])
	}
	return nil
}
