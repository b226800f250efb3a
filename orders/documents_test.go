package orders_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// typewriter prints documents as what stands on them.
type typewriter struct{ fails bool }

func (p *typewriter) Print(_ context.Context, d documents.Document) ([]byte, error) {
	if p.fails {
		return nil, fmt.Errorf("%w: out of paper", healthlab.Invalid)
	}
	type plain struct{ Kind, Title, Number, Subject, Remarks, Paper, At, Sections, Labels, Stock any }
	b, err := json.Marshal(plain{d.Kind, d.Title, d.Number, d.Subject, d.Remarks, d.Paper, d.At, d.Sections, d.Labels, d.Stock})
	return append([]byte("%PDF-"), b...), err
}

// archive is a fixture with documents.
type archive struct {
	*fixture
	printer *typewriter
	files   *folder
	keys    healthlab.Sealer
	links   *documents.Links
}

// sealWith makes URLs of requisitions with keys.
func (a *archive) sealWith(t testing.TB, keys healthlab.Sealer) {
	t.Helper()
	var err error
	a.keys = keys
	a.links, err = documents.NewLinks("https://lab.example.com/forms", keys)
	require.NoError(t, err)
}

func (a *archive) docs() *documents.Service {
	return documents.New(a.Service, a.printer, &documents.Options{Links: a.links, Now: a.now})
}

// folder keeps files in memory, and knows which.
type folder struct {
	orders.BlobStore
	fails bool
	keys  []string
}

func (f *folder) Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error {
	if f.fails {
		return fmt.Errorf("%w: the disk is damaged", healthlab.Invalid)
	}
	f.keys = append(f.keys, key)
	return f.BlobStore.Put(ctx, team, user, key, content)
}

func (f *folder) Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error) {
	if f.fails {
		return nil, fmt.Errorf("%w: the disk is damaged", healthlab.Invalid)
	}
	return f.BlobStore.Get(ctx, team, user, key)
}

// left returns how many of the files that were ever kept are still there.
func (f *folder) left(t testing.TB) int {
	n := 0
	for _, key := range f.keys {
		if r, err := f.BlobStore.Get(t.Context(), healthlab.TeamID{}, healthlab.UserID{}, key); err == nil {
			require.NoError(t, r.Close())
			n++
		}
	}
	return n
}

func newArchive(t testing.TB, edit ...func(*options)) *archive {
	t.Helper()
	a := &archive{printer: &typewriter{}, files: &folder{BlobStore: memory.New(nil).Blobs()}}
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	a.sealWith(t, seal)
	a.fixture = newFixture(t, append(edit, func(o *options) {
		o.Environment = healthlab.Production
		o.Files, o.RequisitionURL = a.files, func(ctx context.Context, team healthlab.TeamID, order orders.OrderID, now time.Time) (string, error) {
			return a.links.URL(ctx, team, order, now)
		}
	})...)
	return a
}

func noFile(t testing.TB, file []byte, err error) {
	t.Helper()
	require.ErrorIs(t, err, healthlab.NotFound)
	require.Equal(t, orders.DocumentNotFound, rule(err))
	require.Nil(t, file)
}

// The requisition shows all that is known of the responsible person.
func TestRequisition_printsAllFieldsOfTheResponsiblePerson(t *testing.T) {
	a := newArchive(t)
	for _, row := range []struct {
		edit func(*people.ResponsiblePerson)
		want []string
	}{
		{func(p *people.ResponsiblePerson) { p.Address.Zip = "89501" }, []string{"11 Holder St, Reno, NV 89501, US", "+15550103 (Mobile)"}},
		{func(p *people.ResponsiblePerson) { p.Address.ZipCode, p.PhoneType = ptr("89501-1234"), "Home" }, []string{"11 Holder St, Reno, NV 89501-1234, US", "+15550103 (Home)"}},
		{func(p *people.ResponsiblePerson) {
			p.Address.ZipCode, p.Address.Country, p.Address.State, p.Address.SecondLine.Text = ptr("K1A 0B1"), "CA", "Ontario", "Unit 2"
		}, []string{"11 Holder St, Unit 2, Reno, Ontario K1A 0B1, CA"}},
	} {
		o := a.placed("walk-in", func(r *orders.PlaceRequest) {
			p := &people.ResponsiblePerson{FirstName: "Dora", LastName: "Holder", PhoneNumber: "+15550103",
				Address: people.AddressInput{FirstLine: "11 Holder St", City: "Reno", State: "NV"}}
			row.edit(p)
			r.HealthInsurance = &people.HealthInsuranceInput{ResponsibleDetails: p}
		})
		a.work()
		file, err := a.docs().Requisition(t.Context(), a.team, o.ID)
		require.NoError(t, err)
		for _, text := range row.want {
			require.Contains(t, string(file), text)
		}
	}
}

func TestRequisition_printsTheOrderAndIsNotPrintedAgain(t *testing.T) {
	a := newArchive(t)
	ctx := t.Context()
	o := a.placed("asked", func(r *orders.PlaceRequest) {
		r.AOEAnswers = []catalogue.AOEAnswer{{MarkerID: 13, QuestionID: 131, Answer: "N"}}
		r.ClinicalNotes = ptr("first\nsecond")
	})
	file, err := a.docs().Requisition(ctx, a.team, o.ID)
	noFile(t, file, err)
	require.Nil(t, o.RequisitionFormURL)
	a.work()
	o = a.get(o)
	require.Equal(t, orders.RequisitionCreated, o.LowLevel())
	file, err = a.docs().Requisition(ctx, a.team, o.ID)
	require.NoError(t, err)
	for _, text := range []string{*o.SampleID, "Ana Roe", "1984-05-09", "7 Elm Rd, Mesa, AZ 85201, US", "No (N)", "code-asked", "P-1", "first", "second", "call us", "Client bill", `"Kind":"requisition"`} {
		require.Contains(t, string(file), text)
	}
	require.Len(t, a.files.keys, 1)

	// What was printed once stays.
	a.settings.Paper = orders.A4
	again, err := a.docs().Requisition(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, string(file), string(again))

	_, err = a.docs().Requisition(ctx, healthlab.TeamID{UUID: id("other team")}, o.ID)
	require.Equal(t, orders.OrderNotFound, rule(err))

	// An imported order has a requisition elsewhere.
	a.settings.OrderImport = true
	in, err := a.Import(ctx, a.team, orders.ImportRequest{UserID: a.user, BillingType: catalogue.ClientBill, CollectionMethod: catalogue.WalkInTest, SampleID: "IMP-1",
		OrderSet: catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test("walk-in")}}, PatientDetails: patient(), PatientAddress: people.ImportAddressInput(address())})
	require.NoError(t, err)
	file, err = a.docs().Requisition(ctx, a.team, in.ID)
	noFile(t, file, err)
	file, err = a.docs().Labels(ctx, a.team, in.ID, documents.LabelsRequest{CollectedAt: noon, Count: 1})
	noFile(t, file, err)
	require.Nil(t, in.RequisitionFormURL)
}

// The URL is returned with the requisition and sent with its event; it is valid for seven
// days and opens no other document.
func TestRequisitionURL_opensItsDocumentForSevenDays(t *testing.T) {
	for _, outcome := range []string{"", "slow"} {
		a := newArchive(t)
		ctx := t.Context()
		o := a.placed("walk-in", withOutcome(outcome))
		a.advance(25 * time.Hour)
		o = a.get(o)
		require.NotNil(t, o.RequisitionFormURL, outcome)
		token, ok := strings.CutPrefix(*o.RequisitionFormURL, "https://lab.example.com/forms/")
		require.True(t, ok)
		_, box, _ := strings.Cut(token, ".")
		sealed, err := base64.RawURLEncoding.DecodeString(box)
		require.NoError(t, err)
		require.Greater(t, len(sealed), 40)
		for _, secret := range [][]byte{[]byte(a.team.String()), []byte(o.ID.String()), a.team.UUID[:], o.ID.UUID[:]} {
			require.False(t, bytes.Contains(sealed, secret))
		}
		told := a.messages(o)
		require.Contains(t, string(told[1].Body), *o.RequisitionFormURL)
		file, err := a.docs().RequisitionAt(ctx, token)
		require.NoError(t, err)
		same, err := a.docs().Requisition(ctx, a.team, o.ID)
		require.NoError(t, err)
		require.Equal(t, string(same), string(file))
		for i := range token {
			bad := []byte(token)
			bad[i] = map[bool]byte{true: 'A', false: 'B'}[bad[i] != 'A']
			file, err := a.docs().RequisitionAt(ctx, string(bad))
			noFile(t, file, err)
		}
		for _, bad := range []string{"", ".", "a.b", token + "A", token + "=", strings.Repeat("A", 3000)} {
			file, err := a.docs().RequisitionAt(ctx, bad)
			noFile(t, file, err)
		}
		made := o.LastEvent.CreatedAt
		for _, e := range o.Events {
			if e.Status.LowLevel() == orders.RequisitionCreated {
				made = e.CreatedAt
			}
		}
		a.advance(documents.LinkValidFor - a.now().Sub(made.Time) - time.Second)
		_, err = a.docs().RequisitionAt(ctx, token)
		require.NoError(t, err)
		a.advance(time.Second)
		file, err = a.docs().RequisitionAt(ctx, token)
		noFile(t, file, err)
		require.Equal(t, o.RequisitionFormURL, a.get(o).RequisitionFormURL)
	}
}

func TestLabels_printTheRequestedNumberWithTestNames(t *testing.T) {
	a := newArchive(t)
	ctx := t.Context()
	o := a.placed("walk-in")
	ask := documents.LabelsRequest{CollectedAt: time.Date(2026, 3, 2, 8, 30, 0, 0, time.FixedZone("", -7*3600)), Count: 4}
	file, err := a.docs().Labels(ctx, a.team, o.ID, ask)
	noFile(t, file, err)
	a.work()
	file, err = a.docs().Labels(ctx, a.team, o.ID, ask)
	require.NoError(t, err)
	for _, text := range []string{"Ana Roe", "Born 1984-05-09", "2026-03-02 08:30 -07:00", "Account P-1", *a.get(o).SampleID} {
		require.Equal(t, 4, strings.Count(strings.SplitN(string(file), `"Labels"`, 2)[1], text), text)
	}
	for _, bad := range []documents.LabelsRequest{{Count: 1}, {CollectedAt: noon}, {CollectedAt: noon, Count: -1}, {CollectedAt: noon, Count: documents.MaxLabels + 1}, {CollectedAt: noon, Count: 1, Stock: "ribbon"}} {
		_, err := a.docs().Labels(ctx, a.team, o.ID, bad)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	require.Empty(t, a.files.keys)
	// A test of many markers is named for all of them; a label has no room for that.
	many := a.requisitioned("walk-in", func(r *orders.PlaceRequest) {
		walk := catalogue.WalkInTest
		r.OrderSet, r.CollectionMethod = &catalogue.OrderSet{AddOn: &catalogue.AddOn{MarkerIDs: []int{11, 12}}}, &walk
	})
	require.True(t, many.LabTest.AutoGenerated)
	file, err = a.docs().Labels(ctx, a.team, many.ID, ask)
	require.NoError(t, err)
	require.Contains(t, string(file), `"2 tests"`)
	require.NotContains(t, string(file), "urea")
	require.Contains(t, string(file), `"Stock":"roll"`)
	ask.Stock = documents.LabelSheet
	file, err = a.docs().Labels(ctx, a.team, o.ID, ask)
	require.NoError(t, err)
	require.Contains(t, string(file), `"Stock":"sheet"`)
}

func TestCoverageNotice_isPrintedForTestsNotCovered(t *testing.T) {
	for _, outcome := range []string{"uncovered", "uncovered,slow"} {
		a := newArchive(t)
		ctx := t.Context()
		o, other := a.placed("walk-in", withOutcome(outcome)), a.placed("walk-in")
		require.False(t, o.HasABN)
		a.advance(25 * time.Hour)
		require.True(t, a.get(o).HasABN, outcome)
		require.Contains(t, string(a.messages(o)[1].Body), `"has_abn":true`)
		kinds, err := a.docs().List(ctx, a.team, o.ID)
		require.NoError(t, err)
		require.Contains(t, kinds, documents.BeneficiaryNotice)
		file, err := a.docs().CoverageNotice(ctx, a.team, o.ID)
		require.NoError(t, err)
		for _, text := range []string{"Ana Roe", "glucose", "urea", "$29.00", "certain diagnoses", "Option 3"} {
			require.Contains(t, string(file), text)
		}
		require.False(t, a.get(other).HasABN)
		kinds, err = a.docs().List(ctx, a.team, other.ID)
		require.NoError(t, err)
		require.NotContains(t, kinds, documents.BeneficiaryNotice)
		file, err = a.docs().CoverageNotice(ctx, a.team, other.ID)
		noFile(t, file, err)
	}
}

// A patient gets an ABN for a test that the insurer will probably not pay. A kit that is not
// registered has no patient and therefore no ABN.
func TestCoverageNotice_ofAKitIsPrintedAfterRegistration(t *testing.T) {
	a := newArchive(t)
	ctx := t.Context()
	kit := a.kit()
	kit.Passthrough = ptr("sandbox:uncovered")
	o, err := a.PlaceTestkit(ctx, a.team, kit)
	require.NoError(t, err)
	a.work()
	o = a.get(o)
	require.NotNil(t, o.SampleID)
	require.False(t, o.HasABN)
	file, err := a.docs().CoverageNotice(ctx, a.team, o.ID)
	noFile(t, file, err)
	require.Empty(t, a.files.keys)
	_, err = a.Register(ctx, a.team, orders.RegisterRequest{SampleID: *o.SampleID, PatientDetails: patient(), PatientAddress: address()})
	require.NoError(t, err)
	require.False(t, a.get(o).HasABN)
	a.work()
	require.True(t, a.get(o).HasABN)
	file, err = a.docs().CoverageNotice(ctx, a.team, o.ID)
	require.NoError(t, err)
	for _, text := range []string{"Ana Roe", *o.SampleID, "glucose"} {
		require.Contains(t, string(file), text)
	}
}

// A coverage message that a lab sends before its acceptance becomes the notice with the
// acceptance; a later message makes no second notice.
func TestCoverageNotice_laterMessagesMakeNoSecondNotice(t *testing.T) {
	lab := &noticing{}
	a := newArchive(t)
	ctx := t.Context()
	var err error
	a.services, err = a.newServices(book(t), lab, a.opts)
	require.NoError(t, err)
	o := a.placed("walk-in")
	_, err = a.SubmitDue(ctx)
	require.NoError(t, err)
	require.False(t, a.get(o).HasABN)
	file, err := a.docs().CoverageNotice(ctx, a.team, o.ID)
	noFile(t, file, err)
	require.NoError(t, a.Receive(ctx, exchange.Message{ID: "1", Team: a.team, Order: o.ID, On: orders.LabAccepted, SampleID: "S1", At: a.now()}))
	require.True(t, a.get(o).HasABN)
	file, err = a.docs().CoverageNotice(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), "first word")

	// The acceptance comes as a message, while the lab is being asked.
	lab.meanwhile = func(o orders.Order) {
		require.NoError(t, a.Receive(ctx, exchange.Message{ID: "2", Team: a.team, Order: o.ID, On: orders.LabAccepted, SampleID: "S2", At: a.now(),
			Notice: &orders.CoverageNotice{Items: []orders.CoverageItem{{Name: "by message"}}}}))
		_, err := a.docs().CoverageNotice(ctx, a.team, o.ID)
		require.NoError(t, err)
	}
	o = a.placed("walk-in")
	_, err = a.SubmitDue(ctx)
	require.NoError(t, err)
	r, err := a.store.Orders().Get(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "by message", r.Notice.Items[0].Name)
}

// noticing is a lab whose answer is a notice alone.
type noticing struct{ meanwhile func(orders.Order) }

func (l *noticing) Submit(_ context.Context, s exchange.Submission) (exchange.Accepted, error) {
	if l.meanwhile != nil {
		l.meanwhile(s.Order)
	}
	return exchange.Accepted{Notice: &orders.CoverageNotice{Items: []orders.CoverageItem{{Name: "first word"}}}}, nil
}

func (l *noticing) Cancel(context.Context, healthlab.TeamID, orders.OrderID) error { return nil }

func (l *noticing) Updates(context.Context, string, int) (exchange.Batch, error) {
	return exchange.Batch{}, nil
}

// If the sealer fails, only the URL is missing.
func TestRequisition_lacksOnlyTheURLIfTheSealerFails(t *testing.T) {
	a := newArchive(t)
	seal := &sealing{Sealer: a.keys, fails: true}
	a.sealWith(t, seal)
	o := a.placed("walk-in", withOutcome("slow"))
	also := a.placed("walk-in")
	a.advance(25 * time.Hour)
	for _, o := range []orders.Order{o, also} {
		o = a.get(o)
		require.Contains(t, history(o), orders.RequisitionCreated)
		require.Nil(t, o.RequisitionFormURL)
		_, err := a.docs().Requisition(t.Context(), a.team, o.ID)
		require.NoError(t, err)
	}
	// It is asked once for each order.
	seal.fails, seal.n = false, 0
	o = a.placed("walk-in", withOutcome("partial"))
	for a.get(o).LowLevel() != orders.Completed {
		a.advance(day)
	}
	require.NotNil(t, a.get(o).RequisitionFormURL)
	require.Equal(t, 1, seal.n)
}

// sealing counts what is sealed, and may fail.
type sealing struct {
	healthlab.Sealer
	fails bool
	n     int
}

func (s *sealing) Seal(ctx context.Context, plain, bound []byte) (healthlab.Sealed, error) {
	s.n++
	if s.fails {
		return healthlab.Sealed{}, healthlab.Unavailable
	}
	return s.Sealer.Seal(ctx, plain, bound)
}

func TestCollectionInstructions_printStepsAndFasting(t *testing.T) {
	a := newArchive(t)
	ctx := t.Context()
	kit, kind := catalogue.Testkit, catalogue.Serum
	contents := catalogue.StaticCatalogContents{
		Labs: []catalogue.Lab{{ID: 1, Slug: "northlab", Name: "Northlab", CollectionMethods: catalogue.CollectionMethods(), SampleTypes: []catalogue.SampleType{kind}}},
		Markers: []catalogue.MarkerComplete{
			{Marker: catalogue.Marker{ID: 1, LabID: ptr(1), Name: "glucose", ALaCarteEnabled: true}},
			{Marker: catalogue.Marker{ID: 2, LabID: ptr(1), Name: "urea", ALaCarteEnabled: true}},
		},
		Tests: []catalogue.StaticTest{
			{LabTest: catalogue.LabTest{ID: test("kit"), Name: "kit", SampleType: kind, Method: kit, Status: catalogue.LabTestActive, Fasting: true}, LabID: 1, MarkerIDs: []int{1}},
			{LabTest: catalogue.LabTest{ID: test("walk-in"), Name: "walk-in", SampleType: kind, Method: catalogue.WalkInTest, Status: catalogue.LabTestActive}, LabID: 1, MarkerIDs: []int{1}},
		},
		Accounts: []catalogue.LabAccount{{ID: account("platform"), Lab: "northlab", Status: catalogue.LabAccountActive, DelegatedFlow: catalogue.NotDelegated,
			AllowedBilling: map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}}},
		Instructions: []catalogue.InstructionSheet{
			{LabID: 1, Method: kit, Title: "Kits", Steps: []string{"Wash your hands."}},
			{LabID: 1, SampleType: kind, MarkerIDs: []int{2}, Title: "Urea", Steps: []string{"Eat no meat."}},
		},
	}
	shelf, err := catalogue.NewStaticCatalog(contents)
	require.NoError(t, err)
	a.opts.LabTests = a.store.LabTests()
	a.services, err = a.newServices(shelf, a.lab, a.opts)
	require.NoError(t, err)

	file, err := a.docs().LabTestInstructions(ctx, a.team, test("kit"))
	require.NoError(t, err)
	require.Contains(t, string(file), "Wash your hands.")
	require.Contains(t, string(file), "nothing but water")
	require.NotContains(t, string(file), "no meat")
	of, err := a.Catalogue().LabTest(ctx, a.team, nil, test("kit"))
	require.NoError(t, err)
	require.True(t, *of.HasCollectionInstructions)
	file, err = a.docs().LabTestInstructions(ctx, a.team, test("walk-in"))
	noFile(t, file, err)
	_, err = a.docs().LabTestInstructions(ctx, a.team, test("none"))
	require.Equal(t, catalogue.LabTestNotFound, rule(err))

	// An order of several markers, and a test of the team's own, have those of each.
	o := a.placed("kit", func(r *orders.PlaceRequest) {
		r.OrderSet.AddOn, r.CollectionMethod = &catalogue.AddOn{MarkerIDs: []int{2}}, &kit
	})
	require.True(t, *o.LabTest.HasCollectionInstructions)
	file, err = a.docs().OrderInstructions(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), "Wash your hands.")
	require.Contains(t, string(file), "no meat")
	own, err := a.Catalogue().CreateLabTest(ctx, a.team, catalogue.LabTestRequest{Name: "mine", MarkerIDs: []int{2}, Method: catalogue.WalkInTest})
	require.NoError(t, err)
	require.True(t, *own.HasCollectionInstructions)
	file, err = a.docs().LabTestInstructions(ctx, a.team, own.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), "no meat")
	file, err = a.docs().OrderInstructions(ctx, a.team, a.placed("walk-in").ID)
	noFile(t, file, err)

	// A catalogue does not promise what it does not have.
	contents.Instructions[0].Steps, contents.Instructions[1].LabID = nil, 7
	contents.Instructions = append(contents.Instructions, catalogue.InstructionSheet{LabID: 1, MarkerIDs: []int{9}, Steps: []string{"x"}})
	contents.Tests[1].HasCollectionInstructions = ptr(true)
	_, err = catalogue.NewStaticCatalog(contents)
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 5)
}

func TestReport_isTheLabsOwnOrPrintsPartialAndFinalResults(t *testing.T) {
	a := newArchive(t)
	ctx := t.Context()
	o := a.placed("walk-in", withOutcome("partial"))
	a.work()
	_, err := a.docs().Report(ctx, a.team, o.ID)
	require.Equal(t, orders.ResultNotFound, rule(err))
	_, err = a.docs().TransactionReport(ctx, a.team, o.OrderTransaction.ID)
	require.Equal(t, orders.ResultNotFound, rule(err))
	for a.get(o).LowLevel() != orders.PartialResults {
		a.advance(day)
	}
	file, err := a.docs().Report(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), "PARTIAL REPORT")
	results, err := a.Results(ctx, a.team, o.ID)
	require.NoError(t, err)
	for _, r := range results.Results {
		require.Contains(t, string(file), r.Name)
		require.Contains(t, string(file), r.Result)
	}

	// The lab's own report takes its place with the results that it says, until there
	// are other results.
	own := []byte("%PDF-1.7 the lab's own")
	require.NoError(t, a.Files().StoreReport(ctx, a.team, o.ID, "REPORT1", own))
	require.NoError(t, a.Files().StoreReport(ctx, a.team, o.ID, "REPORT1", own))
	file, err = a.docs().Report(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), "PARTIAL REPORT", "it is kept, and nobody has said whose results it has")
	part := results
	require.NoError(t, a.Receive(ctx, exchange.Message{ID: "p", Team: a.team, Order: o.ID, On: orders.PartialResult, At: a.now(), Results: &part.Report, ReportFile: "REPORT1"}))
	file, err = a.docs().Report(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, own, file)
	for a.get(o).LowLevel() != orders.Completed {
		a.advance(day)
	}
	file, err = a.docs().Report(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), "FINAL REPORT")
	corrected := results
	require.NoError(t, a.Files().StoreReport(ctx, a.team, o.ID, "REPORT2", []byte("%PDF-1.7 corrected")))
	require.NoError(t, a.Receive(ctx, exchange.Message{ID: "m", Team: a.team, Order: o.ID, On: orders.CorrectedResult, At: a.now(), Results: &corrected.Report, ReportFile: "REPORT2"}))
	file, err = a.docs().Report(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "%PDF-1.7 corrected", string(file))
	all, err := a.docs().TransactionReport(ctx, a.team, o.OrderTransaction.ID)
	require.NoError(t, err)
	require.Contains(t, string(all), "CORRECTED REPORT")
	// An old one that comes again is not the newest.
	require.NoError(t, a.Files().StoreReport(ctx, a.team, o.ID, "REPORT1", own))
	file, err = a.docs().Report(ctx, a.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "%PDF-1.7 corrected", string(file))

	for name, bad := range map[string]func() error{
		"no PDF": func() error { return a.Files().StoreReport(ctx, a.team, o.ID, "x", []byte("hello")) },
		"no id":  func() error { return a.Files().StoreReport(ctx, a.team, o.ID, "", own) },
		"path":   func() error { return a.Files().StoreReport(ctx, a.team, o.ID, "../x", own) },
		"too large": func() error {
			return a.Files().StoreReport(ctx, a.team, o.ID, "x", append(own, bytes.Repeat(own, 1<<20)...))
		},
	} {
		require.ErrorIs(t, bad(), healthlab.Invalid, name)
	}
	require.Equal(t, orders.OrderNotFound, rule(a.Files().StoreReport(ctx, healthlab.TeamID{UUID: id("other team")}, o.ID, "x", own)))
}

// Erasing a user deletes the files of the user's documents.
func TestDocuments_areDeletedWhenTheUserIsErased(t *testing.T) {
	a := newArchive(t)
	ctx := t.Context()
	var mine orders.Order
	for range 3 {
		mine = a.placed("walk-in", withOutcome("uncovered"))
	}
	a.work()
	other := a.placed("walk-in", func(r *orders.PlaceRequest) { r.UserID = healthlab.UserID{UUID: id("patient")} })
	a.work()
	_, err := a.docs().Requisition(ctx, a.team, mine.ID)
	require.NoError(t, err)
	_, err = a.docs().CoverageNotice(ctx, a.team, mine.ID)
	require.NoError(t, err)
	require.NoError(t, a.Files().StoreReport(ctx, a.team, mine.ID, "R1", []byte("%PDF-1.7")))
	_, err = a.docs().Requisition(ctx, a.team, other.ID)
	require.NoError(t, err)
	require.Equal(t, 4, a.files.left(t))
	for range 2 {
		require.NoError(t, a.Files().Forget(ctx, a.team, a.user))
		require.Equal(t, 1, a.files.left(t))
	}
	// Between deletion and erasure nothing new is kept.
	a.users[a.user] = false
	_, err = a.docs().Requisition(ctx, a.team, mine.ID)
	require.NoError(t, err)
	require.NoError(t, a.Files().StoreReport(ctx, a.team, mine.ID, "R2", []byte("%PDF-1.7")))
	require.Equal(t, 1, a.files.left(t))
}

// A failing disk or printer is not reported as invalid input, and changes nothing.
func TestDocuments_storageErrorsAreUnavailableAndChangeNothing(t *testing.T) {
	a := newArchive(t)
	ctx := t.Context()
	o := a.placed("walk-in")
	a.work()
	a.files.fails = true
	_, err := a.docs().Requisition(ctx, a.team, o.ID)
	require.Equal(t, healthlab.Unavailable, healthlab.KindOf(err))
	require.Equal(t, healthlab.Unavailable, healthlab.KindOf(a.Files().StoreReport(ctx, a.team, o.ID, "R1", []byte("%PDF-1.7"))))
	a.files.fails, a.printer.fails = false, true
	_, err = a.docs().Requisition(ctx, a.team, o.ID)
	require.Equal(t, healthlab.Unknown, healthlab.KindOf(err))
	a.printer.fails = false
	_, err = a.docs().Requisition(ctx, a.team, o.ID)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = a.docs().Requisition(ended, a.team, o.ID)
	require.ErrorIs(t, err, context.Canceled)
}

// Without a printer there are no documents.
func TestDocuments_withoutAPrinterThereAreNone(t *testing.T) {
	d := newFixture(t)
	ctx := t.Context()
	o := d.placed("walk-in")
	_, err := d.Simulate(ctx, d.team, o.ID, "", orders.SimulationFlags{})
	require.NoError(t, err)
	none := documents.New(d.Service, nil, nil)
	file, err := none.Requisition(ctx, d.team, o.ID)
	noFile(t, file, err)
	file, err = none.Report(ctx, d.team, o.ID)
	noFile(t, file, err)
	file, err = none.TransactionReport(ctx, d.team, o.OrderTransaction.ID)
	noFile(t, file, err)
	file, err = none.RequisitionAt(ctx, "a.b")
	noFile(t, file, err)
	require.NoError(t, d.Files().StoreReport(ctx, d.team, o.ID, "R1", []byte("%PDF-1.7")))
	require.NoError(t, d.Files().Forget(ctx, d.team, d.user))
	_, err = documents.NewLinks("https://x.example.com", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = documents.NewLinks("", &sealing{})
	require.ErrorIs(t, err, healthlab.Invalid)
}

// rule is the name of the rule that an error is about.
func rule(err error) string {
	var broken *healthlab.RuleError
	if errors.As(err, &broken) {
		return broken.Type
	}
	return ""
}
