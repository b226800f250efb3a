package labreport

import (
	"slices"
	"strings"
)

// notAnalyte reports whether a name belongs to the frame of a document: labels,
// addresses, counters.
func notAnalyte(name string) bool {
	words := foldWords(name)
	if len(words) == 0 {
		return true
	}
	if r, ok := headWords[strings.Join(words, " ")]; ok && (r == rValue || r == rUnit || r == rRange || r == rFlag || r == rPrev) {
		return true
	}
	for _, w := range words {
		if frameWords[w] {
			return true
		}
	}
	return false
}

// guidanceWords are words of lists that say what a value means: by risk, by age, by state.
var guidanceWords = lookup(`risk optimal target goal deficiency deficient insufficiency insufficient sufficiency sufficient prediabetes prediabetic desirable undesirable borderline years year yrs months weeks trimester adults children previous prior detection
	risiko zielwert zielbereich mangel unzureichend ausreichend optimum wunschenswert grenzbereich jahre jahr monate wochen trimenon erwachsene kinder vorwert nachweisgrenze
	riesgo optimo objetivo deficiencia insuficiencia suficiencia deseable anos ano meses semanas trimestre adultos ninos previo deteccion
	risque optimale objectif cible carence insuffisance souhaitable ans mois semaines trimestre adultes enfants anterieur anteriorite detection`)

// guidance reports whether a name that the catalogue does not have is of such a list.
func guidance(name string) bool {
	return slices.ContainsFunc(foldWords(name), func(w string) bool { return guidanceWords[w] })
}

// olderResult reports whether a line gives an older result of the row above it:
// "Previous: 5.2 mg/dL".
func olderResult(l *line) bool {
	for n := 1; n <= min(3, len(l.tokens)); n++ {
		if !strings.HasSuffix(l.tokens[n-1].text, ":") {
			continue
		}
		r, k := headPhrase(l.tokens[:n])
		return k == n && r == rPrev
	}
	return false
}

var frameWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`page pagina seite pages phone tel telefon telephone telefono fax dob born birth geb geboren geburtsdatum nacimiento naissance age alter edad patient paciente patienten
		collected reported received printed drawn abnahme ausgang eingang druck toma emision recibido prelevement edite edition recu address street strasse calle rue avenue suite zip
		physician doctor arzt medico medecin dr director npi clia accession specimen probe muestra sample auftrag order orden
		invoice rechnung factura facture total subtotal amount betrag price preis precio prix vat mwst iva tva eur usd qty menge cantidad quantite tax due balance payment
		account konto cuenta compte iban bic client kunde cliente www http https com email mail version copyright
		gender sex geschlecht sexo sexe height weight bmi grosse gewicht peso talla date datum fecha time uhrzeit hora heure room zimmer insurance versicherung seguro
		license licence accreditation akkreditierung iso reg ref-nr befund laborbefund report informe id`) {
		m[w] = true
	}
	delete(m, "total")
	return m
}()

// stopWords are words of sentences.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`the is are was were be been may might should could can will would has have had with for from this that these those which who if when then than as by an at it its on not your you we our please
		suggest suggests indicate indicates consistent recommended consider clinical clinically confirm patients patient according based interpret interpretation
		der die das ist sind war wird werden kann sollte bei mit von fur oder und dem den ein eine nicht wenn als nach auf zur zum durch sich auch bitte
		el los las es son fue con por para una este esta estos que se puede debe segun como si su sus no entre cuando
		est sont avec pour par une ce cette ces qui que peut doit selon dans sur si il elle vous votre nous aux`) {
		m[w] = true
	}
	for _, w := range []string{"not", "no", "non"} {
		delete(m, w)
	}
	return m
}()

// sentence reports whether a line is running text.
func sentence(l *line) bool {
	words, stops, digits := 0, 0, 0
	for _, t := range l.tokens {
		for _, w := range foldWords(t.text) {
			words++
			if stopWords[w] {
				stops++
			}
			if strings.IndexFunc(w, isDigit) >= 0 {
				digits++
			}
		}
	}
	return words >= 6 && stops >= 3 && float64(stops) >= 0.22*float64(words-digits) || words >= 12 && stops >= 2 && len(l.cells()) == 1 && stops*6 >= words
}
