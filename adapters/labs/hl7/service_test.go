package hl7_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

const serviceCatalogue = `{"labs": [{"id": 1, "slug": "northlab", "name": "Northlab", "collection_methods": ["walk_in_test"], "sample_types": ["serum"]}],
	"markers":      [{"id": 11, "lab_id": 1, "name": "Ferritin", "slug": "ferritin", "provider_id": "4598", "unit": "ug/L"},
	                 {"id": 12, "lab_id": 1, "name": "Iron", "slug": "iron", "provider_id": "7573", "unit": "ug/dL"}],
	"lab_tests":    [{"id": "7b0a3c1e-0000-4000-8000-000000000001", "name": "Iron status", "method": "walk_in_test",
	                  "status": "active", "lab_id": 1, "marker_ids": [11, 12], "price": 39.50}],
	"lab_accounts": [{"lab": "northlab", "status": "active", "allowed_billing": {"client_bill": ["AZ"]}}]}`

// serviceBench is a backend behind an orders.Service.
type serviceBench struct {
	*bench
	team    healthlab.TeamID
	service *orders.Service
	labs    *exchange.Service
	reviews exchange.ReviewStore
}

func newServiceBench(t testing.TB) *serviceBench {
	store := memory.New(&memory.Options{UsersElsewhere: true})
	s := &serviceBench{team: healthlab.TeamID{UUID: uuid.New()}, reviews: store.Reviews()}
	quiet := slog.New(slog.DiscardHandler)
	s.bench = newBenchOn(t, store.LabJournal(), func(o *hl7.Options) { o.LabSlug, o.ReviewTeam, o.Log = "northlab", s.team, quiet })
	s.lab.answer = func(m *er7.Message) (string, error) {
		number := m.Segment("ORC").Field(2).Text()
		return "MSA|AA|$ID\rORC|OK|" + number + "|LAB" + number, nil
	}
	source, err := catalogue.ReadStaticCatalog(strings.NewReader(serviceCatalogue))
	require.NoError(t, err)
	anyUser := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	s.service, err = orders.New(store.Orders(), anyUser, source, &orders.Options{Environment: healthlab.Production, Background: orders.Background{Log: quiet}})
	require.NoError(t, err)
	s.labs, err = exchange.New(s.service, store.Orders(), s.reviews, s.back, nil)
	require.NoError(t, err)
	return s
}

// place places and submits an order, and returns it with its number at the laboratory.
func (s *serviceBench) place(user healthlab.UserID, p people.PatientDetailsInput) (orders.OrderID, string) {
	s.t.Helper()
	p.PhoneNumber, p.Email = "+15550100", "a@example.com"
	o, err := s.service.Place(s.t.Context(), s.team, orders.PlaceRequest{
		UserID: user, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{{UUID: uuid.MustParse("7b0a3c1e-0000-4000-8000-000000000001")}}},
		PatientDetails: p,
		PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	})
	require.NoError(s.t, err)
	_, err = s.labs.SubmitDue(s.t.Context())
	require.NoError(s.t, err)
	return o.ID, s.lab.sent[len(s.lab.sent)-1].Segment("ORC").Field(2).Text()
}

// pull hands everything that was reported to the service.
func (s *serviceBench) pull() {
	s.t.Helper()
	for {
		n, err := s.labs.PullUpdates(s.t.Context())
		require.NoError(s.t, err)
		if n == 0 {
			return
		}
	}
}

// resultTexts are the results of an order, joined; empty for none.
func (s *serviceBench) resultTexts(id orders.OrderID) string {
	s.t.Helper()
	r, err := s.service.Results(s.t.Context(), s.team, id)
	if healthlab.KindOf(err) == healthlab.NotFound {
		return ""
	}
	require.NoError(s.t, err)
	var out []string
	for _, one := range r.Results {
		out = append(out, one.Result)
	}
	return strings.Join(out, "\n") + "\n"
}

// reviewTexts are the results under review, in the queue and in the journal, joined.
func (s *serviceBench) reviewTexts() string {
	s.t.Helper()
	var out []string
	q := exchange.ResultQuery{Team: s.team, Status: exchange.MatchPendingOps, Limit: 100}
	for {
		page, err := s.reviews.Results(s.t.Context(), q)
		require.NoError(s.t, err)
		for _, r := range page.Results {
			for _, one := range r.Message.Results.Results {
				out = append(out, one.Result)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	list, err := s.back.Review(s.t.Context(), 0, 10_000)
	require.NoError(s.t, err)
	for _, d := range list {
		out = append(out, string(d.Raw))
	}
	return strings.Join(out, "\n") + "\n"
}

// writtenName is a name and the ways in which laboratories write it.
type writtenName struct {
	name  string
	forms []string
}

var (
	givenNames = []writtenName{
		{"Maria", []string{"Maria", "MARIA"}}, {"Martha", []string{"Martha", "MARTHA"}}, {"Mariah", []string{"Mariah", "MARIAH"}}, {"Emma", []string{"EMMA"}},
		{"Ella", []string{"Ella", "ELLA"}}, {"José", []string{"JOSE", "José"}}, {"Jon", []string{"JON", "Jon"}}, {"Joseph", []string{"Joseph", "JOSEPH"}},
		{"Anne-Marie", []string{"ANNE MARIE", annesSecondName, "AnneMarie", "ANNE-MARIE"}}, {"Anne", []string{"Anne", "ANNE"}}, {"Zoë", []string{"ZOE", "Zoë"}},
	}
	familyNames = []writtenName{
		{"Muñoz", []string{"MUNOZ", "Muñoz"}}, {"Munos", []string{"MUNOS"}}, {"O’Brien", []string{"O'BRIEN", "OBRIEN", "O Brien"}}, {"Brien", []string{"BRIEN", "Brien"}},
		{"de la Cruz", []string{"DE LA CRUZ", "DELACRUZ", "de la Cruz"}}, {"Cruz", []string{"CRUZ"}}, {"Roe", []string{"ROE", "Roe"}}, {"Rowe", []string{"ROWE"}},
		{"Roe-Lee", []string{"ROE LEE", "Roe-Lee"}}, {"Lee", []string{"LEE", "Lee"}}, {"Straße", []string{"STRASSE", "Straße"}},
	}
)

// annesSecondName is a form of Anne-Marie that is also Anne with a second name, which the order
// may lack.
const annesSecondName = "Anne^Marie"

// reportedFact is what a report says: given and family are indexes, or -1 for none, and
// form is the form of the given name.
type reportedFact struct {
	given, family int
	form          int
	born          string // YYYYMMDD, or empty
	sex           string
	placer, lab   string // order numbers, ours and the laboratory's
}

// testPerson is a patient with orders.
type testPerson struct {
	user          healthlab.UserID
	given, family int
	born          healthlab.Date
	sex           people.Gender
	orders        []orders.OrderID
	numbers       []string
}

func (p *testPerson) fact(order int) reportedFact {
	f := reportedFact{p.given, p.family, 0, strings.ReplaceAll(p.born.String(), "-", ""), "F", p.numbers[order], "LAB" + p.numbers[order]}
	if p.sex == people.Male {
		f.sex = "M"
	}
	return f
}

// canBe reports whether a report says nothing that contradicts an order of the patient, and
// enough to be attached.
func (p *testPerson) canBe(f reportedFact) bool {
	own := p.fact(0)
	given := f.given == own.given || f.givenForm() == annesSecondName && givenNames[own.given].name == "Anne"
	if f.given >= 0 && !given || f.family >= 0 && f.family != own.family || f.born != "" && f.born != own.born || f.sex != "" && f.sex != own.sex ||
		f.born == "" && (f.given < 0 || f.family < 0) {
		return false
	}
	return slices.ContainsFunc(p.numbers, func(n string) bool {
		return (f.placer == n || f.lab == "LAB"+n) && (f.placer == "" || f.placer == n) && (f.lab == "" || !strings.HasPrefix(f.lab, "LAB") || f.lab == "LAB"+n)
	})
}

// givenForm is the given name as it is written.
func (f reportedFact) givenForm() string {
	if f.given < 0 {
		return ""
	}
	forms := givenNames[f.given].forms
	return forms[f.form%len(forms)]
}

// write writes a report of one result.
func (f reportedFact) write(r *rand.Rand, value, at string) []string {
	name := "^" + f.givenForm()
	if f.family >= 0 {
		forms := familyNames[f.family].forms
		name = forms[r.IntN(len(forms))] + name
	}
	if f.given >= 0 && f.givenForm() != annesSecondName && r.IntN(4) == 0 {
		name += "^Q^Jr" // a second name and a suffix that the order does not have
	}
	code := []string{"4598^Ferritin^L", "7573^Iron^L", "ZZ^Other^L"}[r.IntN(3)]
	return []string{
		"PID|1||||" + name + "||" + f.born + "|" + f.sex,
		"OBR|1|" + f.placer + "|" + f.lab + "|" + code + "|||20260302|||||||||||||||" + at + "|||F", "OBX|1|ST|" + code + "||" + value + "||||||F",
	}
}

// Reports with twins, namesakes, swapped and missing parts over HL7: not one result reaches an
// order of another person, and each exact one reaches its order.
func TestMatching_neverAttachesResultsToAnotherPerson(t *testing.T) {
	const each = 50
	exact, attached, wrong, checked := 0, 0, 0, 0
	for round := range prove.Sequential(1_000, 2_000, 102_000) / each { // some that cannot be told apart are left out
		r := rand.New(rand.NewPCG(uint64(round), 40))
		s := newServiceBench(t)
		var crowd []*testPerson
		for i := range 8 {
			p := &testPerson{user: healthlab.UserID{UUID: uuid.New()}, given: r.IntN(len(givenNames)), family: r.IntN(len(familyNames)),
				born: healthlab.Date{Year: 1980 + r.IntN(3), Month: 2, Day: 1 + r.IntN(12)}, sex: []people.Gender{people.Female, people.Male}[r.IntN(2)]}
			if i > 0 && r.IntN(2) == 0 { // a twin, or a namesake
				other := crowd[r.IntN(i)]
				p.family, p.born = other.family, other.born
				if r.IntN(3) == 0 {
					p.given, p.sex = other.given, other.sex
				}
			}
			for range 1 + r.IntN(2) {
				id, number := s.place(p.user, people.PatientDetailsInput{FirstName: givenNames[p.given].name, LastName: familyNames[p.family].name, DOB: p.born, Gender: p.sex})
				p.orders, p.numbers = append(p.orders, id), append(p.numbers, number)
			}
			crowd = append(crowd, p)
		}
		for n := range each {
			p := crowd[r.IntN(len(crowd))]
			order := r.IntN(len(p.orders))
			f := p.fact(order)
			f.form = r.IntN(12)
			other := crowd[r.IntN(len(crowd))]
			theirs := other.fact(r.IntN(len(other.orders)))
			mistakes := r.IntN(5)
			for range mistakes {
				switch r.IntN(17) {
				case 0:
					f.given = theirs.given
				case 1:
					f.family = theirs.family
				case 2:
					f.born = theirs.born
				case 3:
					f.sex = theirs.sex
				case 4:
					f.placer = theirs.placer
				case 5:
					f.lab = theirs.lab
				case 6:
					f.given = r.IntN(len(givenNames))
				case 7:
					f.family = r.IntN(len(familyNames))
				case 8:
					f.given = -1
				case 9:
					f.family = -1
				case 10:
					f.born = ""
				case 11:
					f.sex = ""
				case 12:
					f.placer = ""
				case 13:
					f.placer, f.lab = theirs.placer, theirs.lab
				case 14:
					f.given, f.family = theirs.given, theirs.family
				case 15:
					f.given, f.family = -1, -1
				case 16:
					f.lab = []string{"", "F77"}[r.IntN(2)]
				}
			}
			// A report whose every word is another person's cannot be told from a right one.
			if slices.ContainsFunc(crowd, func(q *testPerson) bool { return q != p && q.canBe(f) }) {
				continue
			}
			checked++
			value := fmt.Sprintf("v%d-%s.", n, p.user)
			require.NotEmpty(t, s.send(s.report("", f.write(r, value, fmt.Sprintf("202603031%03d", n))...)))
			s.pull()
			if mistakes == 0 {
				exact++
				if strings.Contains(s.resultTexts(p.orders[order]), value) {
					attached++
				}
			}
		}
		for _, p := range crowd {
			for _, id := range p.orders {
				for line := range strings.Lines(s.resultTexts(id)) {
					if !strings.Contains(line, p.user.String()) {
						wrong++
						t.Logf("round %d: attached wrongly", round)
					}
				}
			}
		}
	}
	t.Logf("%d reports: %d attached wrongly; of %d exact ones %d attached", checked, wrong, exact, attached)
	require.Zero(t, wrong)
	require.NotZero(t, exact)
	require.GreaterOrEqual(t, float64(attached), 0.999*float64(exact))
}

// taken checks that each value of a message is in results, under review, or refused.
func (s *serviceBench) taken(raw []byte, values []string, ids []orders.OrderID, refused int) {
	s.t.Helper()
	count := func() (stored, review, lost int) {
		var results string
		for _, id := range ids {
			results += s.resultTexts(id)
		}
		waiting := s.reviewTexts()
		for _, v := range values {
			switch {
			case strings.Contains(results, v):
				stored++
			case strings.Contains(waiting, v):
				review++
			default:
				lost++
			}
		}
		return stored, review, lost
	}
	answer := s.back.Handle(s.t.Context(), raw, nil)
	m, err := er7.Parse(answer, nil)
	require.NoError(s.t, err)
	faults := 0
	for seg := range m.Segments() {
		if seg.Name() == "ERR" {
			faults++
		}
	}
	want := "AA"
	if refused > 0 {
		want = "AE"
	}
	require.Equal(s.t, want, m.Segment("MSA").Field(1).Text())
	require.Equal(s.t, refused, faults, "an ERR segment for each refused result")
	s.pull()
	stored, review, lost := count()
	require.Zero(s.t, lost, "stored %d, under review %d of\n%s", stored, review, strings.ReplaceAll(string(raw), "\r", "\n"))
	s.back.Handle(s.t.Context(), raw, nil)
	s.pull()
	again, reviewAgain, lost := count()
	require.Equal(s.t, []int{stored, review, 0}, []int{again, reviewAgain, lost}, "the same message changes nothing")
}

// Of every random message, what is stored, under review and refused adds up to what came.
func TestService_noResultOfARandomMessageIsLost(t *testing.T) {
	const each = 20
	results := 0
	for round := range prove.Sequential(400, 1_000, 20_000) / each {
		r := rand.New(rand.NewPCG(uint64(round), 41))
		s := newServiceBench(t)
		for n := range each {
			var ids []orders.OrderID
			numbers := []string{"", "ELSEWHERE", "UNKNOWN " + fmt.Sprint(n)}
			for range r.IntN(3) {
				id, number := s.place(healthlab.UserID{UUID: uuid.New()}, people.PatientDetailsInput{FirstName: "Ana", LastName: fmt.Sprintf("Roe%c", 'a'+n), DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}, Gender: people.Female})
				ids, numbers = append(ids, id), append(numbers, number, number)
			}
			segments, values, refused := randomMessage(r, n, numbers)
			results += len(values) + refused
			s.taken(s.report("", segments...), values, ids, refused)
		}
	}
	t.Logf("%d results", results)
}

// randomMessage writes the segments of a message in any order, with values that are unique.
func randomMessage(r *rand.Rand, n int, numbers []string) (segments, values []string, refused int) {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	number := func() string { return numbers[r.IntN(len(numbers))] }
	pids := []string{fmt.Sprintf("PID|1||||Roe%c^Ana||19840509|F", 'a'+n), fmt.Sprintf("PID|1||||Roe%c^Ana||19840509|F", 'a'+n), "PID|1||||Poe^Eve||1990|F", "PID|1||||||", "PID|1||||Moe"}
	if r.IntN(8) > 0 {
		segments = append(segments, pids[r.IntN(len(pids))])
	}
	for range 1 + r.IntN(10) {
		switch r.IntN(12) {
		case 0:
			segments = append(segments, pids[r.IntN(len(pids))])
		case 1:
			segments = append(segments, "ORC|RE|"+number()+"|"+pick("", "F1", "LAB"+number()))
		case 2, 3:
			segments = append(segments, "OBR|1|"+number()+"|"+pick("", "F1", "LAB"+number())+"|"+pick("4598^Ferritin^L", "7573^Iron^L", "ZZ^Other^L", "")+"|||20260302|||||||||||||||202603031000|||"+pick("F", "P", "C", ""))
		case 4:
			segments = append(segments, pick("NTE|1||a note", "SPM|1|S1", "PV1|1|O", "NK1|1|x", "ZZZ|1", "TQ1|1"))
		case 5:
			refused++
			segments = append(segments, "OBX|1|ED|PDF^Report^L||LIS^AP^PDF^Base64^not base64||||||F")
		default:
			value := fmt.Sprintf("v%d-%d.", n, len(values))
			kind := pick("ST", "TX", "FT", "CWE", "ST", "")
			if values = append(values, value); kind == "CWE" {
				value = "c^" + value + "^L"
			}
			segments = append(segments, "OBX|1|"+kind+"|"+pick("4598^Ferritin^L", "2276-4^Ferritin^LN", "ZZ9^Unknown^L", "", "^Words")+"|"+pick("", "1", "1", "2")+"|"+value+"||||||"+pick("F", "F", "P", "C", ""))
		}
	}
	return segments, values, refused
}

// The same for all messages of the project and all recorded ones.
func TestService_noResultOfASampleMessageIsLost(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.hl7"))
	require.NoError(t, err)
	recorded, err := filepath.Glob(filepath.Join(realDataDir(), "*.hl7"))
	require.NoError(t, err)
	results := 0
	for _, file := range append(files, recorded...) {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		batch, err := er7.ParseBatch(raw, nil)
		require.NoError(t, err, filepath.Base(file))
		s := newServiceBench(t)
		for _, m := range batch.Messages() {
			code, _ := m.Type()
			if code != "ORU" && code != "OUL" {
				continue
			}
			in, err := hl7.Read(m, nil)
			require.NoError(t, err)
			s.back.Handle(t.Context(), m.Bytes(), nil)
			s.pull()
			waiting := s.reviewTexts()
			references := 0
			for seg := range m.Segments() {
				status := seg.Field(11).Text()
				if seg.Name() != "OBX" || strings.Contains("ONDWRX", status) && status != "" || seg.Field(29).Text() == "QST" || seg.Field(2).Text() == "ED" {
					continue
				}
				for _, p := range seg.Field(5).Repetitions() {
					value := strings.TrimPrefix(strings.TrimSpace(p.Whole()), "+")
					switch seg.Field(2).Text() {
					case "CE", "CWE":
						value = p.Coded().Display()
					case "SN":
						value = p.Plain("")
						if sn, ok := p.Structured(); ok {
							value = sn.String()
						}
					case "DT", "TS":
						at, err := p.Stamp(nil)
						require.NoError(t, err)
						value = at.String()
					case "TM":
						value, _ = p.Clock()
					case "RP": // refused
						references++
						continue
					}
					if p.Null() || value == "" {
						continue
					}
					results++
					kept := strings.Contains(waiting, value) || strings.Contains(strings.ReplaceAll(waiting, " ", ""), strings.ReplaceAll(value, " ", ""))
					require.True(t, kept || strings.Contains(missingTexts(s), value), "%s: OBX %d of %d tests", filepath.Base(file), seg.Number(), len(in.Tests))
				}
			}
			require.Len(t, in.Refused, references, filepath.Base(file))
		}
	}
	t.Logf("%d results of %d files", results, len(files)+len(recorded))
}

// missingTexts are the reasons of missing results under review.
func missingTexts(s *serviceBench) string {
	page, err := s.reviews.Results(s.t.Context(), exchange.ResultQuery{Team: s.team, Status: exchange.MatchPendingOps, Limit: 100})
	require.NoError(s.t, err)
	var out []byte
	for _, r := range page.Results {
		b, err := json.Marshal(r.Message.Results.MissingResults)
		require.NoError(s.t, err)
		out = append(out, b...)
	}
	return string(out)
}
