package fhirlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
)

// Reasons for which the journal holds a bundle for review.
const (
	// ReviewNoMatch means that the report names no order of this service, and Options.ReviewTeam is not set.
	ReviewNoMatch = "no_match"
	// ReviewNoResult means that the report leads to no message to the orders.Service. This reason is given only if the
	// report names no order, may concern another person, withdraws an earlier report, or its order was cancelled.
	ReviewNoResult = "no_result"
)

// group holds the reports of one bundle about the same order, patient and numbers.
type group struct {
	// held is the order that the reports name; nil for none.
	held *dossier
	// foreign holds the reported numbers of orders and patients that do not belong to held.
	foreign []string
	patient orders.ReportedPatient
	// apart is true if a reported number or a detail of the patient differs from the order, or neither name nor birth date
	// is reported. The state of such reports is stored in dossier.Others, and messages about the order's patient never
	// include them.
	apart   bool
	reports []*Report
}

// comparedPatient returns the patient of a report to compare with the patient of an order. If the report has several
// names, it returns the patient with a name that contradicts the order, if there is one.
func comparedPatient(r *Report, of *dossier) orders.ReportedPatient {
	for _, p := range r.Patients {
		if of != nil && p.Contradicts(of.Patient) {
			return p
		}
	}
	return r.Patients[0]
}

// assign groups the reports of a bundle. found holds orders by order number. alias maps references of the laboratory to
// order numbers.
func assign(reports []Report, found map[string]*dossier, alias map[string]string) (out []*group) {
	for i := range reports {
		r := &reports[i]
		g := &group{}
		name := func(number, as string) {
			switch held := found[number]; {
			case held == nil || g.held != nil && g.held != held:
				g.foreign = add(g.foreign, as)
			default:
				g.held = held
			}
		}
		for _, n := range r.Numbers {
			name(orderNumber(n, found), n)
		}
		for _, ref := range r.References {
			name(alias[ref], ref)
		}
		if g.held != nil {
			for _, n := range r.PatientNumbers {
				if n != g.held.User.String() {
					g.foreign = add(g.foreign, n)
				}
			}
		}
		g.patient = comparedPatient(r, g.held)
		if g.held != nil {
			g.apart = len(g.foreign) > 0 || !g.patient.Matches(g.held.Patient)
		}
		at := slices.IndexFunc(out, func(o *group) bool {
			return o.held == g.held && o.apart == g.apart && (g.held != nil && !g.apart || o.patient == g.patient && slices.Equal(o.foreign, g.foreign))
		})
		if at < 0 {
			at, out = len(out), append(out, g)
		}
		out[at].reports = append(out[at].reports, r)
	}
	return out
}

// orderNumber returns the order number in n. If n is not in found, n is taken as the number of a test: the order
// number, a hyphen and the test's position.
func orderNumber(n string, found map[string]*dossier) string {
	if found[n] == nil {
		if order, ok := withoutTestPosition(n); ok {
			return order
		}
	}
	return n
}

func withoutTestPosition(n string) (string, bool) {
	i := strings.LastIndexByte(n, '-')
	if i < 0 {
		return "", false
	}
	_, err := strconv.Atoi(n[i+1:])
	return n[:i], err == nil
}

// Receive accepts a bundle, a DiagnosticReport or an Observation of a laboratory. Receiving the same content again
// changes nothing. Results that name no order go to review. It returns Invalid, and stores nothing, if a part cannot be
// read without loss. After any other error the caller should repeat the call.
func (b *Backend) Receive(ctx context.Context, raw []byte) error {
	reports, err := Read(raw, &b.opts)
	if err != nil {
		return err
	}
	alias := map[string]string{}
	var numbers []string
	for i := range reports {
		for _, n := range reports[i].Numbers {
			numbers = add(numbers, n)
			if order, ok := withoutTestPosition(n); ok {
				numbers = add(numbers, order)
			}
		}
		for _, ref := range reports[i].References {
			held, err := b.journal.Get(ctx, aliasRecord+ref)
			if err != nil && !errors.Is(err, healthlab.NotFound) {
				return fmt.Errorf("receive bundle: %w", err)
			}
			alias[ref] = held.Number
			numbers = add(numbers, held.Number)
		}
	}
	if err := healthlab.CheckText(numbers...); err != nil {
		return fmt.Errorf("%w: order number: must be valid UTF-8 without the character U+0000", healthlab.Invalid)
	}
	if err := b.storeFiles(ctx, reports, numbers, alias); err != nil {
		return fmt.Errorf("receive bundle: %w", err)
	}
	d := labjournal.Delivery{Key: contentKey(raw), At: b.opts.Now(), Team: b.opts.ReviewTeam, Raw: raw}
	_, err = b.journal.Take(ctx, d, numbers, func(found map[string]*dossier) (out labjournal.Effect) {
		for i, g := range assign(reports, found, alias) {
			m, review := g.apply(&d, i, &b.opts)
			if m != nil {
				out.Messages = append(out.Messages, *m)
			}
			if review != "" {
				out.Review = review
			}
		}
		return out
	})
	if err != nil {
		return fmt.Errorf("receive bundle: %w", err)
	}
	return nil
}

// apply adds the reports of a group to the state of their order. n is the position of the group in the bundle d. It
// returns the message to the orders.Service, or the reason for which the journal holds the bundle for review, or
// neither if there is nothing new to report.
func (g *group) apply(d *labjournal.Delivery, n int, opts *Options) (*exchange.Message, string) {
	if g.held == nil {
		if opts.ReviewTeam.IsZero() {
			return nil, ReviewNoMatch
		}
		stranger := dossier{}
		stranger.State.addReports(g.reports)
		m := stranger.message(d.Key, d.At, &g.patient, opts)
		if m == nil {
			return nil, ReviewNoResult
		}
		if m.On != orders.PartialResult {
			m.On, m.Awaited = orders.PartialResult, []int{} // final, but not the whole report of an order
		}
		m.ID, m.Team, m.SampleID, m.ForeignNumbers = digestID("unassigned", d.Key, fmt.Sprint(n)), opts.ReviewTeam, "", g.foreign
		for _, r := range g.reports {
			for _, number := range r.LabNumbers {
				m.LabNumbers = add(m.LabNumbers, number)
			}
		}
		return m, ""
	}
	withdrawn := slices.ContainsFunc(g.reports, func(r *Report) bool { return r.Status == "entered-in-error" })
	if !g.apart {
		g.held.State.addReports(g.reports)
		m := g.held.message(d.Key, d.At, &g.patient, opts)
		if m == nil && (withdrawn || g.held.Cancelled) {
			return nil, ReviewNoResult
		}
		return m, ""
	}
	news, held := g.newReports()
	own := *g.held
	own.State = orderState{}
	own.State.addReports(news)
	for key, h := range own.State.Reports {
		for i := range h.Results {
			was := held.Reports[key].Results
			k := slices.IndexFunc(was, func(r heldResult) bool { return r.Key == h.Results[i].Key })
			h.Results[i].Corrects = k >= 0 && was[k].Corrects
		}
	}
	m := own.message(d.Key, d.At, &g.patient, opts)
	if m == nil || len(m.Results.Results) == 0 {
		return nil, ReviewNoResult
	}
	m.ID, m.ForeignNumbers, m.ReportFile = digestID(m.ID, g.key()), g.foreign, ""
	return m, ""
}

// newReports returns what the reports of an uncertain group report for the first time: a person decides on each report
// once, whatever else the laboratory reports with it later. newReports adds the reports to the separate state of their
// patient and numbers, and returns that state.
func (g *group) newReports() (news []*Report, state orderState) {
	key := g.key()
	before := g.held.Others[key]
	state = before
	state.addReports(g.reports)
	for _, r := range g.reports {
		was, known := before.Reports[r.Key]
		if !known || newer(r.Status, r.At, was.Status, was.At) && (rank(r.Status) > 0 && rank(was.Status) == 0 || r.Status == "entered-in-error") {
			news = append(news, r)
			continue
		}
		one := *r
		one.Results = slices.DeleteFunc(slices.Clone(r.Results), func(n ReportedResult) bool {
			i := slices.IndexFunc(was.Results, func(o heldResult) bool { return o.Key == n.Key })
			if i < 0 {
				return false
			}
			old := was.Results[i]
			same := rank(n.Status) > 0 == (rank(old.Status) > 0) && n.Result.Equal(old.Result)
			return same || !newer(n.Status, r.At, old.Status, old.At)
		})
		if len(one.Results) > 0 {
			news = append(news, &one)
		}
	}
	g.held.Others = maps.Clone(g.held.Others)
	if g.held.Others == nil {
		g.held.Others = map[string]orderState{}
	}
	g.held.Others[key] = state
	return news, state
}

// key returns a digest of the patient and the foreign numbers that a group reports.
func (g *group) key() string {
	patient, err := json.Marshal(g.patient)
	if err != nil {
		panic(err) // texts and a date always encode
	}
	return digestID(append([]string{string(patient)}, g.foreign...)...)
}

// storeFiles stores with Options.Reports the PDF file of each report that has exactly one and surely belongs to an
// order. It ignores the errors NotFound and Invalid of Options.Reports. alias maps references of the laboratory to
// order numbers.
func (b *Backend) storeFiles(ctx context.Context, reports []Report, numbers []string, alias map[string]string) error {
	if b.opts.Reports == nil || !slices.ContainsFunc(reports, func(r Report) bool { return len(r.Documents) == 1 }) {
		return nil
	}
	found, err := b.storedOrders(ctx, numbers)
	if err != nil {
		return err
	}
	for _, g := range assign(reports, found, alias) {
		if g.held == nil || g.apart {
			continue
		}
		for _, r := range g.reports {
			if len(r.Documents) != 1 {
				continue
			}
			err := b.opts.Reports(ctx, g.held.Team, g.held.Order, digestID(string(r.Documents[0])), r.Documents[0])
			if kind := healthlab.KindOf(err); err != nil && kind != healthlab.NotFound && kind != healthlab.Invalid {
				return fmt.Errorf("store PDF of report: %w", err)
			}
		}
	}
	return nil
}

// contentKey returns a digest that is equal for bundles which differ only in the layout of their JSON.
func contentKey(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) == nil {
		if b, err := json.Marshal(v); err == nil {
			return digestID(string(b))
		}
	}
	return digestID(string(raw))
}

// Handler receives what the laboratory sends: POST of a bundle to the root or to /$process-message, and POST or PUT of
// a DiagnosticReport or an Observation. authorize is required. It must return an error unless the laboratory sent the
// request. The answer 200 is sent after everything was stored. An answer 422 says what cannot be read. After an answer
// 5xx the laboratory should send the request again.
func (b *Backend) Handler(authorize func(*http.Request) error) http.Handler {
	if authorize == nil {
		panic("fhirlab: authorize is nil")
	}
	mux := http.NewServeMux()
	take := func(w http.ResponseWriter, r *http.Request) {
		if err := authorize(r); err != nil {
			answer(w, http.StatusUnauthorized, "login", "the credential is missing or not the laboratory's")
			return
		}
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, b.opts.MaxBytes))
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			answer(w, http.StatusRequestEntityTooLarge, "too-long", fmt.Sprintf("must have at most %d bytes", b.opts.MaxBytes))
			return
		case err != nil:
			return
		}
		err = b.Receive(r.Context(), raw)
		switch {
		case err == nil:
			b.accept(w, raw)
		case errors.Is(err, healthlab.Invalid):
			b.opts.Log.Warn("bundle refused", "error", err.Error())
			answer(w, http.StatusUnprocessableEntity, "invalid", err.Error())
		default:
			b.opts.Log.Warn("bundle not accepted", "error", err.Error())
			answer(w, http.StatusServiceUnavailable, "transient", "the bundle was not accepted; send it again: what is already stored is not stored twice")
		}
	}
	for _, pattern := range []string{"POST /{$}", "POST /$process-message", "POST /DiagnosticReport", "POST /Observation", "PUT /DiagnosticReport/{id}", "PUT /Observation/{id}"} {
		mux.HandleFunc(pattern, take)
	}
	return mux
}

// accept answers that the received body is stored. The answer to a transaction or batch is a bundle with one response
// for each entry.
func (b *Backend) accept(w http.ResponseWriter, raw []byte) {
	var in bundleIn
	_ = json.Unmarshal(raw, &in)
	if in.ResourceType != "Bundle" || in.Type == "message" || in.Type == "collection" {
		answer(w, http.StatusOK, "informational", "stored")
		return
	}
	out := object{"resourceType": "Bundle", "type": in.Type + "-response"}
	var entries []any
	for range in.Entry {
		entries = append(entries, object{"response": object{"status": "201 Created"}})
	}
	if entries != nil {
		out["entry"] = entries
	}
	send(w, http.StatusOK, out)
}

func answer(w http.ResponseWriter, status int, code, text string) {
	severity := "error"
	if status < http.StatusBadRequest {
		severity = "information"
	}
	send(w, status, object{"resourceType": "OperationOutcome", "issue": []any{object{"severity": severity, "code": code, "diagnostics": text}}})
}

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/fhir+json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
