package critical

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// LoopID identifies a loop: the notification of one critical result until a person acknowledges it.
type LoopID struct{ uuid.UUID }

// Status is the state of a loop.
type Status string

// Statuses of a loop.
const (
	// Open: the loop waits for an acknowledgement, and more escalation steps will follow.
	Open Status = "open"
	// Escalated: the loop waits for an acknowledgement, and every escalation step has passed.
	Escalated Status = "escalated"
	// Acknowledged: a person has acknowledged the result, and the loop has ended.
	Acknowledged Status = "acknowledged"
	// Withdrawn: the laboratory corrected the result to one that is not critical, and the loop has ended.
	Withdrawn Status = "withdrawn"
)

// Statuses returns all statuses.
func Statuses() []Status { return []Status{Open, Escalated, Acknowledged, Withdrawn} }

// Waits reports whether the loop waits for an acknowledgement.
func (s Status) Waits() bool { return s == Open || s == Escalated }

// Loop tracks one critical result of an order until a person acknowledges it. Printing or logging it shows no
// result.
type Loop struct {
	healthlab.Private

	ID      LoopID           `json:"id"`
	OrderID uuid.UUID        `json:"order_id"`
	UserID  healthlab.UserID `json:"user_id"`
	// SampleID is the laboratory's id of the specimen; null if it has none.
	SampleID *string `json:"sample_id"`
	Status   Status  `json:"status"`
	// Result is the result to acknowledge.
	Result Snapshot `json:"result"`
	// Revision is the number of snapshots of the result: 1, and one more for each correction that is critical.
	Revision int `json:"revision"`
	// Escalation are the loop's escalation steps; empty until background work has processed the loop once.
	Escalation []Deadline `json:"escalation"`
	// NextStepAt is the time of the next escalation step; null if there is none.
	NextStepAt *healthlab.Time `json:"next_step_at"`
	// Acknowledgement is null until a person has acknowledged the result.
	Acknowledgement *Acknowledgement `json:"acknowledgement"`
	// History has all events of the loop, oldest first.
	History []Entry `json:"history"`
	// OpenedAt is the time at which the result was stored. Deadlines count from it.
	OpenedAt  healthlab.Time `json:"opened_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// Snapshot is a critical result as the laboratory reported it. Printing or logging it shows nothing.
type Snapshot struct {
	healthlab.Private

	// Code is the LOINC code, else the laboratory's own; null if it has neither.
	Code *string `json:"code"`
	Name string  `json:"name"`
	// Value is the text of the result as the report prints it.
	Value          string                   `json:"value"`
	Unit           *string                  `json:"unit"`
	ReferenceRange *string                  `json:"reference_range"`
	Interpretation labresult.Interpretation `json:"interpretation"`
}

func snapshotOf(r *labresult.Result) Snapshot {
	code := r.LOINC
	if code == nil || *code == "" {
		code = r.ProviderID
	}
	return rules.DeepCopy(Snapshot{
		Code: code, Name: r.Name, Value: r.Result, Unit: r.Unit, ReferenceRange: r.ReferenceRange, Interpretation: r.Interpretation,
	})
}

func (s *Snapshot) sameFinding(o *Snapshot) bool {
	return s.Value == o.Value && rules.TextOf(s.Unit) == rules.TextOf(o.Unit) && rules.TextOf(s.ReferenceRange) == rules.TextOf(o.ReferenceRange)
}

// Step is one step of a team's escalation ladder. If a result is not acknowledged within After, an event names To as
// the recipient.
type Step struct {
	// After is the time since the result was stored, in whole minutes.
	After time.Duration
	// To is the role or the recipient, in the team's words.
	To string
}

// DefaultLadder returns the escalation steps of a team that has chosen none: after 15, 30 and 60 minutes.
func DefaultLadder() []Step {
	return []Step{
		{15 * time.Minute, "ordering_clinician"}, {30 * time.Minute, "clinician_on_call"}, {time.Hour, "medical_director"},
	}
}

// Deadline is an escalation step of one loop.
type Deadline struct {
	To    string         `json:"to"`
	DueAt healthlab.Time `json:"due_at"`
	// PassedAt is the time at which the step passed without an acknowledgement; null before that, and if the
	// loop ended first.
	PassedAt *healthlab.Time `json:"passed_at"`
}

// Acknowledgement records that a person has read back the value of the result.
type Acknowledgement struct {
	healthlab.Private

	By string         `json:"by"`
	At healthlab.Time `json:"at"`
	// Revision is the revision of the snapshot whose value the person read back.
	Revision int `json:"revision"`
}

// EntryKind is the kind of a history [Entry].
type EntryKind string

// Kinds of history entries.
const (
	// Announced: a critical result was stored. The first entry of each loop.
	Announced EntryKind = "announced"
	// Corrected: a correction changed the result, and it is still critical.
	Corrected EntryKind = "corrected"
	// StepPassed: an escalation step passed without an acknowledgement.
	StepPassed EntryKind = "unacknowledged"
	// WasAcknowledged: a person read the value back.
	WasAcknowledged EntryKind = "acknowledged"
	// WasWithdrawn: a correction made the result not critical.
	WasWithdrawn EntryKind = "withdrawn"
)

// Entry is one event in the history of a loop. Fields that do not apply to its kind are left out.
type Entry struct {
	healthlab.Private

	At    healthlab.Time `json:"at"`
	Event EntryKind      `json:"event"`
	// Revision is the revision of the snapshot at that time.
	Revision int `json:"revision"`
	// Result is the new snapshot of [Announced] and [Corrected].
	Result *Snapshot `json:"result,omitempty"`
	// Step counts from 1; To is the recipient of the step.
	Step int    `json:"step,omitempty"`
	To   string `json:"to,omitempty"`
	// By is the person who acknowledged.
	By string `json:"by,omitempty"`
	// Reason is the reason for the withdrawal: corrected_to_normal or corrected_to_abnormal.
	Reason string `json:"reason,omitempty"`
}

// OrderEntry is an [Entry] in the history of its order, without the result.
type OrderEntry struct {
	ID       LoopID         `json:"critical_result_id"`
	At       healthlab.Time `json:"at"`
	Event    EntryKind      `json:"event"`
	Revision int            `json:"revision"`
	Step     int            `json:"step,omitempty"`
	To       string         `json:"to,omitempty"`
	By       string         `json:"by,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// Record is a stored loop.
type Record struct {
	Loop
	Team healthlab.TeamID
	// Finding identifies the result within the order. Number counts the loops of the order, from 1.
	Finding string
	Number  int
	// ReportStatus is the status of the latest report with the result. FirstReported is the time of the order's
	// first report, Reported that of the latest.
	ReportStatus            labresult.Status
	FirstReported, Reported healthlab.Time
	// Due is the time at which background work processes the loop; zero for never.
	Due time.Time
}

func (r *Record) add(e Entry) {
	e.Revision = r.Revision
	r.History = append(slices.Clone(r.History), e)
	r.UpdatedAt = e.At
}

func (r *Record) passed() int {
	return len(slices.DeleteFunc(slices.Clone(r.Escalation), func(d Deadline) bool { return d.PassedAt == nil }))
}

// escalate marks the steps that are due at the instant at as passed, and plans the next one. If the loop has no steps
// yet, it copies those in ladder. It is a no-op if the loop does not wait for an acknowledgement.
func (r *Record) escalate(at healthlab.Time, ladder []Step) {
	if !r.Status.Waits() {
		return
	}
	if len(r.Escalation) == 0 {
		for _, step := range ladder {
			r.Escalation = append(r.Escalation, Deadline{To: step.To, DueAt: healthlab.At(r.OpenedAt.Add(step.After))})
		}
	}
	r.Escalation = slices.Clone(r.Escalation)
	for i := r.passed(); i < len(r.Escalation) && !r.Escalation[i].DueAt.After(at.Time); i++ {
		r.Escalation[i].PassedAt = &at
		r.add(Entry{At: at, Event: StepPassed, Step: i + 1, To: r.Escalation[i].To})
	}
	r.Due, r.NextStepAt = time.Time{}, nil
	if i := r.passed(); i < len(r.Escalation) {
		next := r.Escalation[i].DueAt
		r.Due, r.NextStepAt = next.Time, &next
	} else {
		r.Status = Escalated
	}
}

func (r *Record) end(status Status, e Entry) {
	r.Status, r.Due, r.NextStepAt = status, time.Time{}, nil
	r.add(e)
}

// ReadBack is the value of the result as the acknowledging person repeats it.
type ReadBack struct {
	healthlab.Private

	// Value must be the value of the snapshot. Spaces at the ends and repeated spaces are ignored.
	Value string `json:"value"`
	// Unit is optional; if given, it must be the unit of the snapshot.
	Unit *string `json:"unit"`
}

// Request is a request to acknowledge a critical result.
type Request struct {
	healthlab.Private

	// AcknowledgedBy is the name of the person, with 1 to 200 characters.
	AcknowledgedBy string   `json:"acknowledged_by"`
	ReadBack       ReadBack `json:"read_back"`
}

// Highest lengths of the texts in a request, in characters.
const (
	maxPerson = 200
	maxValue  = 10_000
	maxUnit   = 200
)

// Check returns Invalid with every problem of the request.
func (r *Request) Check() error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Filled(r.AcknowledgedBy, "acknowledged_by", maxPerson)
	c.Under("read_back").Filled(r.ReadBack.Value, "value", maxValue)
	c.Under("read_back").Optional(r.ReadBack.Unit, "unit", maxUnit)
	return p.Err()
}

// Values of [healthlab.RuleError].Type for critical results.
const (
	NotFound         = "CRITICAL_RESULT_NOT_FOUND"
	AlreadyClosed    = "CRITICAL_RESULT_CLOSED"
	ReadBackMismatch = "READ_BACK_MISMATCH"
)

// acknowledge ends the loop if the read-back equals the result. READ_BACK_MISMATCH if it differs;
// CRITICAL_RESULT_CLOSED if another person has acknowledged the result or the loop was withdrawn. A repeated request by
// the same person is a no-op.
func (r *Record) acknowledge(req Request, at healthlab.Time) error {
	by := oneLine(req.AcknowledgedBy)
	again := r.Status == Acknowledged && r.Acknowledgement.By == by
	if !r.Status.Waits() && !again {
		return &healthlab.RuleError{Kind: healthlab.Conflict, Type: AlreadyClosed, Msg: "the critical result was acknowledged or withdrawn before; read it to see by whom and why"}
	}
	if oneLine(req.ReadBack.Value) != oneLine(r.Result.Value) {
		return rules.Broken(ReadBackMismatch, "read_back.value: must be the value of the result as it is printed; read the result anew and repeat it")
	}
	if unit := req.ReadBack.Unit; unit != nil && oneLine(*unit) != oneLine(rules.TextOf(r.Result.Unit)) {
		return rules.Broken(ReadBackMismatch, "read_back.unit: must be the unit of the result as it is printed, or be left out")
	}
	if again {
		return nil
	}
	r.Acknowledgement = &Acknowledgement{By: by, At: at, Revision: r.Revision}
	r.end(Acknowledged, Entry{At: at, Event: WasAcknowledged, By: by})
	return nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Report is the stored report of an order's results.
type Report struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Order    uuid.UUID
	SampleID *string
	Status   labresult.Status
	Results  []labresult.Result
	// FirstReported is the time of the order's first report, and Reported that of this one.
	FirstReported, Reported healthlab.Time
	// At is the time at which the report is stored.
	At healthlab.Time
}

// applyReport applies a report to the loops of its order, which are sorted by number. It returns the new loops and
// those that it has changed, sorted by number.
//
// A critical result opens a loop, unless a loop of the result waits, or the last one was acknowledged with the same
// value, unit and range. If a loop waits and the critical result has changed, the loop gets a new snapshot. If a loop
// waits and the result is normal or abnormal, the loop is withdrawn. An unknown or missing result leaves it waiting.
func applyReport(loops []*Record, rep Report) (changed []*Record) {
	latest := map[string]*Record{}
	for _, l := range loops {
		latest[l.Finding] = l
		if l.UserID != rep.User || rules.TextOf(l.SampleID) != rules.TextOf(rep.SampleID) {
			l.UserID, l.SampleID = rep.User, rules.ClonePtr(rep.SampleID)
			changed = append(changed, l)
		}
	}
	count := len(loops)
	seen := map[string]int{}
	for i := range rep.Results {
		result := &rep.Results[i]
		finding := result.Finding()
		if seen[finding]++; seen[finding] > 1 { // several results of one code are told apart by their order
			finding = fmt.Sprintf("%s #%d", finding, seen[finding])
		}
		l, now := latest[finding], snapshotOf(result)
		waits := l != nil && l.Status.Waits()
		switch now.Interpretation {
		case labresult.Critical:
			switch {
			case waits && l.Result.sameFinding(&now), l != nil && l.Status == Acknowledged && l.Result.sameFinding(&now):
				continue
			case waits:
				l.revise(now, rep, Corrected)
			default:
				count++
				l = rep.newLoop(finding, count)
				l.revise(now, rep, Announced)
			}
		case labresult.Normal, labresult.Abnormal:
			if !waits {
				continue
			}
			l.end(Withdrawn, Entry{At: rep.At, Event: WasWithdrawn, Reason: "corrected_to_" + string(now.Interpretation)})
		default:
			continue
		}
		latest[finding] = l
		if !slices.Contains(changed, l) {
			changed = append(changed, l)
		}
	}
	slices.SortStableFunc(changed, func(a, b *Record) int { return cmp.Compare(a.Number, b.Number) })
	return changed
}

// newLoop returns a new loop of the report's order for the result that finding identifies. It is due at once, so that
// background work plans its steps.
func (rep *Report) newLoop(finding string, number int) *Record {
	return &Record{
		Team: rep.Team, Finding: finding, Number: number, Due: rep.At.Time,
		Loop: Loop{
			ID: loopID(rep.Order, number), OrderID: rep.Order, UserID: rep.User, SampleID: rules.ClonePtr(rep.SampleID),
			Status: Open, OpenedAt: rep.At, Escalation: []Deadline{},
		},
	}
}

func loopID(order uuid.UUID, number int) LoopID {
	// The id is derived, so that a transaction that runs twice opens the same loop.
	return LoopID{uuid.NewSHA1(order, fmt.Appendf(nil, "critical result %d", number))}
}

func (r *Record) revise(s Snapshot, rep Report, as EntryKind) {
	r.Result = s
	r.Revision++
	r.ReportStatus, r.FirstReported, r.Reported = rep.Status, rep.FirstReported, rep.Reported
	r.add(Entry{At: rep.At, Event: as, Result: &s})
}

// LogValue logs the ids of loop and order only.
func (l Loop) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", l.ID.String()), slog.String("order", l.OrderID.String()))
}
