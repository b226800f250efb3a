package personkeytest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// AtRestStore returns the stores of personal data under test. adapters/memory and adapters/postgres have these
// methods.
type AtRestStore interface {
	Users() healthdata.Users
	Data() healthdata.Data
	Continuous() continuous.Store
	ContinuousWork() continuous.Work
	Persons() people.Store
	Orders() orders.Store
	OrderKeys() idempotency.Keys
	Reviews() exchange.ReviewStore
	ParsingJobs() labreport.Store
	LabJournal() labjournal.Store
}

// AtRestHarness is a fresh, empty store that encrypts all personal data, samples included, with keys of persons.
type AtRestHarness struct {
	Store AtRestStore
	// Files is nil if the store has no files.
	Files labreport.BlobStore
	Keys  *personkey.Keys
	// Kept returns all stored data, as text or bytes. Bytes may be written in hex or base64.
	Kept func(t testing.TB) []byte
}

// RunAtRest tests stores that are made with [personkey.Keys]. It searches all stored bytes for personal values, and
// requires that no data of a person can be read after the person's key was deleted. newStore returns a fresh, empty
// store and registers its own cleanup on t.
func RunAtRest(t *testing.T, newStore func(t testing.TB) AtRestHarness) {
	for name, c := range conformance.Sorted(atRestCases) {
		t.Run("AtRest/"+name, func(t *testing.T) {
			a := atRestT{t, newStore(t), conformance.NewTeam(), conformance.NewUser()}
			if name == "Files" && a.Files == nil {
				t.Skip("the store keeps no files")
			}
			u := healthdatatest.LiveUser(a.team, a.user.String())
			u.ID = a.user
			require.NoError(t, a.Store.Users().Insert(t.Context(), u, 0))
			c.plant(a)
			require.NoError(t, c.read(a), "what was written is read")
			kept := a.Kept(t)
			id := a.user.UUID
			require.True(t, bytes.Contains(kept, []byte(id.String())) || bytes.Contains(kept, id[:]), "the kept form has the user")
			requireNoMarks(t, kept)

			require.NoError(t, a.Keys.Delete(t.Context(), personkey.Ref{Team: a.team, User: a.user}))
			require.ErrorIs(t, c.read(a), healthlab.NotFound, "nothing is read without the key")

			for _, at := range []time.Time{atRestNoon, atRestNoon.Add(-time.Hour)} { // the first update drops the document
				u, err := a.Store.Users().Update(t.Context(), a.team, a.user, func(u *healthdata.User) ([]healthlab.Event, error) {
					u.DeletedAt = at
					return nil, nil
				})
				require.NoError(t, err, "a user without a key is deleted")
				require.True(t, at.Equal(u.DeletedAt))
			}
			require.NoError(t, a.Store.Users().Erase(t.Context(), a.team, a.user))
			requireNoMarks(t, a.Kept(t))
		})
	}
}

// atRestT is one case of [RunAtRest]: a store with one live user.
type atRestT struct {
	*testing.T
	AtRestHarness
	team healthlab.TeamID
	user healthlab.UserID
}

var atRestNoon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// Personal values that the cases write. The stored bytes must not contain any of them.
const (
	markFirst   = "Quillonia"
	markLast    = "Brackwater"
	markBirth   = "1931-07-23"
	markPhone   = "+14155550199"
	markEmail   = "zq-marker@example.com"
	markAddress = "77 Zanzibar Mews"
	markMember  = "MEMBER-ZQ-4471"
	markNote    = "note-zq-marker"
	markResult  = "result-zq-marker"
	markFile    = "document-zq-marker"
	markEvent   = "event-zq-marker"
	markSummary = "summary-zq-marker"
	markSample  = "zqsample" // 8 bytes, for a sample value of 8 bytes
)

var atRestMarks = []string{
	markFirst, markLast, markBirth, markPhone, markEmail, markAddress, markMember, markNote, markResult, markFile, markEvent, markSummary,
	markSample,
}

// requireNoMarks fails if the stored data has one of the values that the cases wrote: in any letter case, as text,
// hex, base64 or plain digest. Its error contains no value.
func requireNoMarks(t testing.TB, kept []byte) {
	t.Helper()
	low := bytes.ToLower(kept)
	for i, mark := range atRestMarks {
		for _, form := range []string{mark, strings.ToLower(mark), strings.ToUpper(mark)} {
			require.False(t, bytes.Contains(low, []byte(strings.ToLower(form))), "value %d is kept in clear", i)
			sum := sha256.Sum256([]byte(form))
			require.False(t, bytes.Contains(kept, sum[:]), "value %d is kept as a digest without a key", i)
			require.False(t, bytes.Contains(low, []byte(hex.EncodeToString([]byte(form)))), "value %d is kept in hex", i)
			for shift := range 3 { // base64 encodes three bytes at a time, so the text depends on where the value begins
				text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + form))
				text = text[(shift*8+5)/6 : len(text)-2] // without the letters that depend on adjacent bytes
				require.False(t, bytes.Contains(kept, []byte(text)), "value %d is kept in base64", i)
			}
		}
	}
	born := healthlab.Date{Year: 1931, Month: 7, Day: 23}
	require.False(t, bytes.Contains(kept, []byte(born.At(time.UTC).Format(time.RFC3339))), "the birth date is kept as a time")
}

var atRestCases = map[string]struct {
	plant func(atRestT)
	read  func(atRestT) error
}{
	"BirthDate":    {plantBirthDate, readBirthDate},
	"Demographics": {plantDemographics, readDemographics},
	"Insurance":    {plantInsurance, readInsurance},
	"Orders":       {plantOrder, readOrder},
	"Answers":      {plantAnswer, readAnswer},
	"Reviews":      {plantReview, readReview},
	"ParsingJobs":  {plantJob, readJob},
	"Files":        {plantFile, readFile},
	"Records":      {plantRecord, readRecord},
	"Samples":      {plantSamples, readSamples},
	"Tables":       {plantTable, readTable},
	"LabJournal":   {plantLabMessage, readLabMessage},
}

func (t atRestT) ok(err error) {
	t.Helper()
	require.NoError(t, err)
}

func (t atRestT) id(name string) uuid.UUID { return conformance.Named(name + t.user.String()) }

func (t atRestT) event() healthlab.Event {
	return healthlab.Event{
		ID: uuid.New(), Type: "labtest.order.created", Team: t.team, User: t.user, Key: "order:" + t.user.String(), At: atRestNoon,
		Data: []byte(`{"name":"` + markFirst + `","note":"` + markEvent + `"}`),
	}
}

func plantBirthDate(t atRestT) {
	_, err := t.Store.Users().Update(t.Context(), t.team, t.user, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.FallbackBirthDate = &healthdata.FallbackBirthDate{Value: healthlab.Date{Year: 1931, Month: 7, Day: 23}, SourceSlug: "manual", UpdatedAt: healthlab.At(atRestNoon)}
		return []healthlab.Event{t.event()}, nil
	})
	t.ok(err)
}

// readBirthDate reads the user's birth date from the store. NotFound if there is none.
func readBirthDate(t atRestT) error {
	u, err := t.Store.Users().Get(t.Context(), t.team, t.user)
	if err == nil && u.FallbackBirthDate == nil {
		return healthlab.NotFound
	}
	if err == nil {
		require.Equal(t, markBirth, u.FallbackBirthDate.Value.String())
	}
	return err
}

func plantDemographics(t atRestT) {
	t.ok(t.Store.Persons().PutUserInfo(t.Context(), t.team, t.user, people.UserInfo{
		FirstName: markFirst, LastName: markLast, Email: markEmail, PhoneNumber: markPhone, Gender: "female",
		DOB:     healthlab.Date{Year: 1931, Month: 7, Day: 23},
		Address: people.UserAddress{FirstLine: markAddress, City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	}))
}

func readDemographics(t atRestT) error {
	info, err := t.Store.Persons().UserInfo(t.Context(), t.team, t.user)
	if err == nil {
		require.Equal(t, markFirst, info.FirstName)
	}
	return err
}

func plantInsurance(t atRestT) {
	plantDemographics(t)
	t.ok(t.Store.Persons().AddCoverage(t.Context(), people.Coverage{
		ID: t.id("coverage"), Team: t.team, User: t.user, ValidFrom: atRestNoon,
		Record: people.InsuranceRecord{
			MemberID: markMember, PayorCode: "P1", Relationship: people.RelationSelf, IsPrimary: true,
			Insured: people.PersonDetails{FirstName: markFirst, LastName: markLast, PhoneNumber: markPhone, Email: markEmail, DOB: healthlab.Date{Year: 1931, Month: 7, Day: 23}},
		},
	}))
}

func readInsurance(t atRestT) error {
	c, err := t.Store.Persons().Coverage(t.Context(), t.team, t.id("coverage"))
	if err == nil {
		require.Equal(t, markMember, c.Record.MemberID)
	}
	return err
}

func plantOrder(t atRestT) {
	at := healthlab.At(atRestNoon)
	r := orders.Record{Order: orders.Order{
		ID: orders.OrderID{UUID: t.id("order")}, TeamID: t.team, UserID: t.user, Origin: orders.OriginInitial,
		LabTest:     catalogue.LabTest{ID: catalogue.LabTestID{UUID: conformance.Named("test")}, Name: "Basics", Method: catalogue.WalkInTest},
		Details:     orders.NewDetails(catalogue.WalkInTest, t.id("details"), t.id("shipment"), at),
		BillingType: catalogue.ClientBill, CreatedAt: at,
		OrderTransaction: orders.OrderTransaction{ID: orders.TransactionID{UUID: t.id("transaction")}},
		PatientDetails: &people.PatientDetails{
			FirstName: new(markFirst), LastName: new(markLast), DOB: healthlab.Date{Year: 1931, Month: 7, Day: 23},
			Gender: people.Female, PhoneNumber: new(markPhone), Email: new(markEmail),
		},
		PatientAddress: &people.PatientAddress{ReceiverName: markFirst + " " + markLast, FirstLine: markAddress, City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
		SampleID:       new(markMember),
		Notes:          new(markNote), ClinicalNotes: new(markNote),
	}}
	r.Visits = []orders.Visit{{
		Appointment: orders.Appointment{ID: t.id("visit"), Address: appointment.Address{FirstLine: markAddress}},
	}}
	r.Results = &labresult.Report{
		Metadata: labresult.Metadata{Patient: markLast + ", " + markFirst, DOB: markBirth},
		Results:  []labresult.Result{{Name: "Glucose", Result: markResult, Notes: new(markNote)}},
	}
	_, err := t.Store.Orders().Insert(t.Context(), r, func(*orders.Record) ([]healthlab.Event, error) { return []healthlab.Event{t.event()}, nil })
	t.ok(err)
}

func readOrder(t atRestT) error {
	r, err := t.Store.Orders().Get(t.Context(), t.team, orders.OrderID{UUID: t.id("order")})
	if err == nil {
		require.Equal(t, markResult, r.Results.Results[0].Result)
	}
	return err
}

func (t atRestT) scope() idempotency.Scope {
	return idempotency.Scope{Team: t.team, Endpoint: "POST /v3/order", Key: "key of " + t.user.String()}
}

func plantAnswer(t atRestT) {
	k, err := t.Store.OrderKeys().StartKey(t.Context(), t.scope(), "fingerprint", orders.OrderID{UUID: t.id("order")}, time.Minute)
	t.ok(err)
	t.ok(t.Store.OrderKeys().FinishKey(t.Context(), t.scope(), k.Until, []byte(`{"first_name":"`+markFirst+`"}`), t.user, time.Hour))
}

func readAnswer(t atRestT) error {
	k, err := t.Store.OrderKeys().StartKey(t.Context(), t.scope(), "fingerprint", orders.OrderID{UUID: t.id("order")}, time.Minute)
	if err == nil {
		require.Contains(t, string(k.Answer), markFirst)
	}
	return err
}

func plantReview(t atRestT) {
	at := healthlab.At(atRestNoon)
	r := exchange.RawResult{
		UnmatchedResult: exchange.UnmatchedResult{
			ID: exchange.RawResultID{UUID: t.id("result")}, Status: exchange.MatchPendingCustomer, Note: new(markNote), CreatedAt: at, UpdatedAt: at,
			Patient: &exchange.ReviewPatient{FirstName: new(markFirst), LastName: new(markLast)},
		},
		Team: t.team, Subject: t.user,
		Message: exchange.Message{
			ID: "m", Team: t.team, At: atRestNoon,
			Patient: &orders.ReportedPatient{FirstName: markFirst, LastName: markLast, DOB: healthlab.Date{Year: 1931, Month: 7, Day: 23}},
			Results: &labresult.Report{Results: []labresult.Result{{Name: "Glucose", Result: markResult}}},
		},
	}
	t.ok(t.Store.Reviews().InsertResult(t.Context(), r, []healthlab.Event{t.event()}))
}

func readReview(t atRestT) error {
	r, err := t.Store.Reviews().Result(t.Context(), t.team, exchange.RawResultID{UUID: t.id("result")})
	if err == nil {
		require.Equal(t, markNote, *r.Note)
	}
	return err
}

func plantJob(t atRestT) {
	t.ok(t.Store.ParsingJobs().Insert(t.Context(), labreport.Job{
		ID: labreport.JobID{UUID: t.id("job")}, Team: t.team, User: t.user, Status: labreport.PendingReview, CreatedAt: atRestNoon, UpdatedAt: atRestNoon,
		Draft: &labreport.Data{
			Metadata: labreport.Metadata{PatientFirstName: new(markFirst), PatientLastName: new(markLast), DOB: new(markBirth)},
			Results:  []labreport.Result{{TestName: "Glucose", Value: markResult}},
		},
	}, 0, []healthlab.Event{t.event()}))
}

func readJob(t atRestT) error {
	j, err := t.Store.ParsingJobs().Get(t.Context(), t.team, labreport.JobID{UUID: t.id("job")})
	if err == nil {
		require.Equal(t, markResult, j.Draft.Results[0].Value)
	}
	return err
}

func plantFile(t atRestT) {
	t.ok(t.Files.Put(t.Context(), t.team, t.user, "orders/"+t.id("order").String()+"/abn", strings.NewReader(strings.Repeat(markFile, 100))))
}

func readFile(t atRestT) error {
	f, err := t.Files.Get(t.Context(), t.team, t.user, "orders/"+t.id("order").String()+"/abn")
	if err != nil {
		return err
	}
	b, err := io.ReadAll(f)
	require.Contains(t, string(b), markFile)
	require.NoError(t, f.Close())
	return err
}

func plantLabMessage(t atRestT) {
	number := t.id("number").String()
	_, err := t.Store.LabJournal().Open(t.Context(), "north", labjournal.Record{Number: number, Team: t.team, User: t.user, Doc: []byte(markFirst + markLast)})
	t.ok(err)
	d := labjournal.Delivery{Key: number, At: atRestNoon, Team: t.team, Raw: []byte(markBirth + markResult)}
	_, err = t.Store.LabJournal().Take(t.Context(), "north", d, []string{number}, func(map[string]*labjournal.Record) (labjournal.Outcome, error) {
		return labjournal.Outcome{Messages: []labjournal.Message{{Team: t.team, User: t.user, Doc: []byte(markResult + markNote)}}}, nil
	})
	t.ok(err)
}

func readLabMessage(t atRestT) error {
	r, err := t.Store.LabJournal().Record(t.Context(), "north", t.id("number").String())
	if err == nil {
		require.Equal(t, markFirst+markLast, string(r.Doc))
	}
	return err
}

func plantRecord(t atRestT) {
	t.ok(t.Store.Data().PutRecords(t.Context(), t.team, t.user, []healthdata.Record{{
		Resource: "profile", ID: t.id("record"), Provider: "manual", SourceType: "app", Index: atRestNoon,
		Doc: []byte(`{"name":"` + markFirst + `","text":"` + markSummary + `"}`), Raw: []byte(`{"raw":"` + markSummary + `"}`),
		CreatedAt: atRestNoon, UpdatedAt: atRestNoon,
	}}, func([]healthdata.PutResult) ([]healthlab.Event, error) { return []healthlab.Event{t.event()}, nil }))
}

func readRecord(t atRestT) error {
	_, one, err := t.Store.Data().Find(t.Context(), t.team, "profile", t.id("record"))
	if err == nil {
		require.Contains(t, string(one.Doc), markSummary)
		require.Contains(t, string(one.Raw), markSummary)
	}
	viewed := t.Store.Data().View(t.Context(), t.team, t.user, func(v healthdata.View) error {
		all, err := v.Records(t.Context(), healthdata.RecordQuery{Resource: "profile", Raw: true})
		if err == nil {
			require.Equal(t, one, all[0])
		}
		return err
	})
	require.Equal(t, err == nil, viewed == nil, "Find and View agree")
	return err
}

var atRestSeries = healthdata.SeriesKey{Resource: "note", Provider: "manual", SourceType: "app"}

// atRestSamples are the numbers of samples that plantSamples writes, one write after another. They differ so that
// each form in which a store may keep samples occurs.
var atRestSamples = []int{1, 1, 2000, 1, 30, 1}

// atRestNumbers is a series whose samples have no text. Texts of samples are always encrypted, so only such a
// series shows whether samples are.
var atRestNumbers = healthdata.SeriesKey{Resource: "heartrate", Provider: atRestSeries.Provider, SourceType: atRestSeries.SourceType}

func plantSamples(t atRestT) {
	plantSeries(t, atRestSeries, series.Attrs{Text: markNote, Tags: markNote})
	plantSeries(t, atRestNumbers, series.Attrs{})
}

func plantSeries(t atRestT, key healthdata.SeriesKey, attrs series.Attrs) {
	value := math.Float64frombits(binary.LittleEndian.Uint64([]byte(markSample)))
	at := atRestNoon.UnixMicro()
	write := func(b *series.Block, events func([]series.Outcome) ([]healthlab.Event, error)) {
		t.ok(t.Store.Data().MergeSamples(t.Context(), t.team, t.user, []healthdata.SampleBatch{{Key: key, Samples: b, Span: series.PerMinute}}, events))
	}
	for _, n := range atRestSamples {
		b := new(series.Block)
		for i := range n {
			s := series.Sample{Time: at, Value: float64(i) / 3, Attrs: attrs}
			if i == 0 || i == n-1 {
				s.Value = value
			}
			b.Append(s)
			at += time.Minute.Microseconds()
		}
		write(b, func([]series.Outcome) ([]healthlab.Event, error) { return []healthlab.Event{t.event()}, nil })
	}
	b := new(series.Block)
	b.Append(series.Sample{Time: at, Value: value, Attrs: series.Attrs{Text: attrs.Text}})
	write(b, nil)
}

func readSamples(t atRestT) error {
	return t.Store.Data().View(t.Context(), t.team, t.user, func(v healthdata.View) error {
		all, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{atRestSeries.Resource}})
		if err != nil {
			return err
		}
		require.Len(t, all, 1)
		var starts []int64
		for i := range all[0].Chunks {
			starts = append(starts, all[0].Chunks[i].Start)
		}
		chunks, err := v.Load(t.Context(), atRestSeries, starts)
		if err != nil {
			return err
		}
		n := 0
		var scan series.Scanner
		for b, err := range scan.Blocks(chunks, all[0].Pending, series.Range{From: series.MinTime, To: series.MaxTime}) {
			if err != nil {
				return err
			}
			for _, s := range b.All() {
				require.Equal(t, markNote, s.Attrs.Text)
				n++
			}
		}
		want := 1
		for _, n := range atRestSamples {
			want += n
		}
		require.Equal(t, want, n)
		return nil
	})
}

func plantTable(t atRestT) {
	team, user := t.team, t.user
	t.ok(t.Store.Continuous().Insert(t.Context(), continuous.Query{
		ID: continuous.QueryID{UUID: t.id("query")}, Team: team, Slug: "sleep", Status: continuous.Active, Resources: []string{"sleep"}, CreatedAt: atRestNoon,
	}))
	for {
		n, err := t.Store.ContinuousWork().Backfill(t.Context(), 100)
		t.ok(err)
		if n == 0 {
			break
		}
	}
	tasks, err := t.Store.ContinuousWork().Claim(t.Context(), 1, time.Hour)
	t.ok(err)
	require.Len(t, tasks, 1)
	require.Equal(t, user, tasks[0].User)
	t.ok(t.Store.ContinuousWork().Finish(t.Context(), tasks[0], continuous.Outcome{
		Status: continuous.TaskCompleted, Table: []byte("PAR1" + markSummary), Events: []healthlab.Event{t.event()},
	}))
}

func readTable(t atRestT) error {
	table, err := t.Store.Continuous().Result(t.Context(), t.team, t.user, continuous.QueryID{UUID: t.id("query")})
	if err == nil {
		require.Equal(t, "PAR1"+markSummary, string(table))
	}
	return err
}
