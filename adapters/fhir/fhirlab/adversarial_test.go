package fhirlab_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// writtenName is a name and the ways in which laboratories write it.
type writtenName struct {
	name  string
	forms []string
}

var (
	givenNames = []writtenName{
		{"Maria", []string{"Maria", "MARIA"}}, {"Martha", []string{"Martha", "MARTHA"}}, {"Emma", []string{"EMMA"}}, {"José", []string{"JOSE", "José"}},
		{"Jon", []string{"JON", "Jon"}}, {"Anne-Marie", []string{"ANNE MARIE", "AnneMarie", "ANNE-MARIE"}}, {"Anne", []string{"Anne", "ANNE"}}, {"Zoë", []string{"ZOE", "Zoë"}},
	}
	familyNames = []writtenName{
		{"Muñoz", []string{"MUNOZ", "Muñoz"}}, {"Munos", []string{"MUNOS"}}, {"O’Brien", []string{"O'BRIEN", "OBRIEN", "O Brien"}}, {"Brien", []string{"BRIEN"}},
		{"de la Cruz", []string{"DE LA CRUZ", "DELACRUZ"}}, {"Cruz", []string{"CRUZ"}}, {"Roe", []string{"ROE", "Roe"}}, {"Rowe", []string{"ROWE"}}, {"Straße", []string{"STRASSE"}},
	}
)

// fact is what a bundle says. given and family are indexes, or -1 for none.
type fact struct {
	given, family int
	born, sex     string
	number        string // ours, or empty
	reference     string // the laboratory's ServiceRequest, or empty
	patient       string // our number of the patient, or empty
}

// person is a patient with orders.
type person struct {
	user          healthlab.UserID
	given, family int
	born          healthlab.Date
	sex           people.Gender
	orders        []orders.OrderID
	numbers       []string
}

func (p *person) fact(order int) fact {
	return fact{p.given, p.family, p.born.String(), string(p.sex), p.numbers[order], "ServiceRequest/at-" + p.numbers[order] + "-1", p.user.String()}
}

// canBe reports whether a bundle says nothing that contradicts an order of the patient, and enough to be
// attached.
func (p *person) canBe(f fact) bool {
	own := p.fact(0)
	if f.given >= 0 && f.given != own.given || f.family >= 0 && f.family != own.family || f.born != "" && f.born != own.born || f.sex != "" && f.sex != own.sex ||
		f.patient != "" && f.patient != own.patient || f.born == "" && (f.given < 0 || f.family < 0) {
		return false
	}
	return slices.ContainsFunc(p.numbers, func(n string) bool {
		at := "ServiceRequest/at-" + n + "-1"
		return (f.number == n || f.reference == at) && (f.number == "" || f.number == n) && (f.reference == "" || f.reference == at)
	})
}

// write writes a bundle of one result, in one of the forms in which laboratories send it.
func (f fact) write(r *rand.Rand, n int, value string) object {
	name := object{}
	if f.family >= 0 {
		forms := familyNames[f.family].forms
		name["family"] = forms[r.IntN(len(forms))]
	}
	if f.given >= 0 {
		forms := givenNames[f.given].forms
		name["given"] = []string{forms[r.IntN(len(forms))]}
		if r.IntN(4) == 0 {
			name["given"], name["suffix"] = append(name["given"].([]string), "Q"), []string{"Jr"}
		}
	}
	who := object{"resourceType": "Patient", "id": "p"}
	if len(name) > 0 {
		who["name"] = []any{name}
	}
	if f.born != "" {
		who["birthDate"] = f.born
	}
	if f.sex != "" {
		who["gender"] = f.sex
	}
	if f.patient != "" {
		who["identifier"] = []any{object{"system": "urn:healthlab:patient", "value": f.patient}}
	}
	var based []any
	if f.number != "" {
		based = append(based, object{"identifier": object{"system": "urn:healthlab:order", "value": f.number}})
	}
	if f.reference != "" {
		based = append(based, ref(f.reference))
	}
	id := fmt.Sprintf("o%d", n)
	result := observed(id, []string{"4598", "7573", "ZZ"}[r.IntN(3)], value)
	report := reported(fmt.Sprintf("r%d", n), "", id)
	if based != nil {
		report["basedOn"] = based
	}
	switch r.IntN(5) {
	case 0: // by REST
		result["subject"], report["subject"] = ref("#p"), ref("#p")
		report["contained"], report["result"] = []any{who, result}, []any{ref("#" + id)}
		return report
	case 1: // an observation alone
		if based != nil {
			result["basedOn"] = based
		}
		return bundle("batch", who, result)
	case 2: // beside a stranger
		return bundle("message", report, result, who, patient("stranger", "Stranger", "Sam"))
	case 3: // the order is in the bundle
		if f.number != "" {
			report["basedOn"] = append([]any{ref("ServiceRequest/inside")}, slices.DeleteFunc(slices.Clone(based), func(b any) bool { return b.(object)["identifier"] != nil })...)
			request := object{"resourceType": "ServiceRequest", "id": "inside", "identifier": []any{object{"system": "urn:healthlab:order", "value": f.number + "-2"}}}
			return bundle("transaction", request, who, report, result)
		}
	}
	return bundle("transaction", who, report, result)
}

// Bundles with twins, namesakes, swapped and missing parts: not one result reaches an order of another person,
// each exact one reaches its order, and none is lost.
func TestMatching_randomBundlesNeverReachAnotherPersonsOrder(t *testing.T) {
	const each = 50
	exact, attached, wrong, lost, checked := 0, 0, 0, 0, 0
	for round := range prove.Sequential(1_000, 2_000, 110_000) / each { // some that cannot be told apart are left out
		r := rand.New(rand.NewPCG(uint64(round), 47))
		b := newBench(t)
		var crowd []*person
		for i := range 8 {
			p := &person{
				user: healthlab.UserID{UUID: uuid.New()}, given: r.IntN(len(givenNames)), family: r.IntN(len(familyNames)),
				born: healthlab.Date{Year: 1980 + r.IntN(3), Month: 2, Day: 1 + r.IntN(12)}, sex: []people.Gender{people.Female, people.Male}[r.IntN(2)],
			}
			if i > 0 && r.IntN(2) == 0 { // a twin, or a namesake
				other := crowd[r.IntN(i)]
				p.family, p.born = other.family, other.born
				if r.IntN(3) == 0 {
					p.given, p.sex = other.given, other.sex
				}
			}
			for range 1 + r.IntN(2) {
				id, n := b.place(p.user, people.PatientDetailsInput{FirstName: givenNames[p.given].name, LastName: familyNames[p.family].name, DOB: p.born, Gender: p.sex})
				p.orders, p.numbers = append(p.orders, id), append(p.numbers, n)
			}
			crowd = append(crowd, p)
		}
		var values []string
		for n := range each {
			p := crowd[r.IntN(len(crowd))]
			order := r.IntN(len(p.orders))
			f := p.fact(order)
			if r.IntN(2) == 0 {
				f.patient = ""
			}
			other := crowd[r.IntN(len(crowd))]
			theirs := other.fact(r.IntN(len(other.orders)))
			mistakes := r.IntN(5)
			for range mistakes {
				switch r.IntN(18) {
				case 0:
					f.given = theirs.given
				case 1:
					f.family = theirs.family
				case 2:
					f.born = theirs.born
				case 3:
					f.sex = theirs.sex
				case 4:
					f.number = theirs.number
				case 5:
					f.reference = theirs.reference
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
					f.number = ""
				case 13:
					f.number, f.reference = theirs.number, theirs.reference
				case 14:
					f.given, f.family = theirs.given, theirs.family
				case 15:
					f.given, f.family = -1, -1
				case 16:
					f.reference = []string{"", "ServiceRequest/elsewhere"}[r.IntN(2)]
				case 17:
					f.patient = []string{"", theirs.patient}[r.IntN(2)]
				}
			}
			// A bundle whose every word is another person's cannot be told from a right one.
			if slices.ContainsFunc(crowd, func(q *person) bool { return q != p && q.canBe(f) }) {
				continue
			}
			checked++
			value := fmt.Sprintf("v%d-%s.", n, p.user)
			values = append(values, value)
			require.NoError(t, b.send(f.write(r, n, value)))
			if mistakes == 0 {
				exact++
				if strings.Contains(b.resultTexts(p.orders[order]), value) {
					attached++
				}
			}
		}
		all := b.waiting()
		for _, p := range crowd {
			for _, id := range p.orders {
				results := b.resultTexts(id)
				all += results
				for line := range strings.Lines(results) {
					if !strings.Contains(line, p.user.String()) {
						wrong++
						t.Logf("round %d: attached wrongly", round)
					}
				}
			}
		}
		for _, v := range values {
			if !strings.Contains(all, v) {
				lost++
				t.Logf("round %d: lost", round)
			}
		}
	}
	t.Logf("%d bundles: %d attached wrongly, %d lost; of %d exact ones %d attached", checked, wrong, lost, exact, attached)
	require.Zero(t, wrong)
	require.Zero(t, lost)
	require.NotZero(t, exact)
	require.GreaterOrEqual(t, float64(attached), 0.999*float64(exact))
}
