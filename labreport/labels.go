package labreport

import (
	"strings"
)

// metaField is what a label of the frame of a report announces.
type metaField uint8

const (
	noField metaField = iota
	fName
	fFirst
	fLast
	fDOB
	fSex
	fCollected
	fReported
	fSpecimen
	fLab
	fIgnore
)

// labelWords are labels, folded, in four languages.
var labelWords = lists(map[metaField]string{
	fName: "patient|patient name|name|name of patient|full name|patient in|patientin|patientenname|patient name sex|nombre|paciente|nombre del paciente|nombre y apellidos|nom du patient|nom et prenom|nom prenom|nom|patient e|patiente|" +
		"name vorname|nachname vorname|apellidos y nombre|apellidos nombre|nombre completo|pat name|pt name|pat|patient information name|client name|donor|subject|nombre paciente|patient s name|pt|sr a|mme|m mme|nom complet|name patient",
	fFirst: "first name|given name|given names|vorname|first|prenom|prenoms|nombres|nombre de pila|forename",
	fLast:  "last name|surname|family name|nachname|familienname|apellidos|apellido|nom de famille|last|primer apellido|nom de naissance|nom usuel",
	fDOB: "dob|date of birth|birth date|birthdate|born|d o b|geb|geboren|geburtsdatum|geb datum|geb am|geboren am|fecha de nacimiento|f nacimiento|fecha nacimiento|f nac|fec nac|nacimiento|nacido|nacida|nacido a|date de naissance|" +
		"ne le|nee le|ne e le|ddn|naissance|date naiss|fecha nac|dn|f de nacimiento|f de nac|born on|birthday|d naissance|fn|ne e",
	fSex: "sex|gender|geschlecht|sexo|sexe|genero|genre|patient sex|sex at birth|administrative sex|legal sex",
	fCollected: "collected|date collected|collection date|collection|coll|collected on|collection time|sample date|date of collection|specimen collected|drawn|date drawn|draw date|sample collected|sampled|sampling date|specimen date|collection date time|date time collected|" +
		"taken|sample taken|date taken|coll date|abnahme|abnahmedatum|entnahme|entnahmedatum|blutentnahme|probenentnahme|abgenommen|abnahme am|entnommen|entnahmezeit|probenahme|abnahmezeit|entnommen am|abnahmezeitpunkt|" +
		"toma|toma de muestra|fecha de toma|fecha toma|extraccion|fecha de extraccion|fecha extraccion|fecha de toma de muestra|f toma|f extraccion|fecha de la toma|fecha muestra|fecha de recoleccion|recoleccion|" +
		"preleve le|prelevement|date de prelevement|date prelevement|prelevement du|preleve|prelevement le|preleve e le|date du prelevement|collected date|date and time collected|service date|date of service|collect date|specimen collection date|obtained",
	fReported: "reported|date reported|report date|reported on|rep|issued|date issued|issue date|released|date of report|report|resulted|final report|report issued|completed|date of issue|reported date|verified|date time reported|result date|released on|results date|published|rep date|" +
		"signed out|finalized|date completed|ausgang|ausgangsdatum|befunddatum|befund vom|ausgegeben|berichtsdatum|freigabe|freigegeben|befundausgang|endbefund|freigegeben am|berichtet|ausgabe|bericht vom|befundet|befund erstellt|erstellt|erstellt am|validiert|" +
		"emision|fecha de emision|fecha emision|f emision|fecha informe|fecha de informe|informado|fecha resultado|fecha de resultado|fecha del informe|emitido|fecha de resultados|f informe|fecha de validacion|validado|fecha validacion|" +
		"edite le|edition|date d edition|rendu le|date du compte rendu|valide le|resultats du|compte rendu du|edite|date de validation|date edition|compte rendu edite le|imprime et valide le|date de rendu|valide|date du rapport|emis le|rapport du",
	fSpecimen: "specimen|specimen id|specimen no|specimen number|sample|sample no|sample id|sample number|accession|accession no|accession number|lab no|lab number|lab nr|labor nr|labornummer|proben nr|probennummer|auftragsnummer|auftrags nr|auftragsnr|auftrag|tagesnummer|probe|" +
		"barcode|lab id|lab ref|requisition|requisition no|requisition number|lab reference|order no|order number|report no|report number|acc|acc no|acc number|lab report no|sid|test no|befundnummer|befund nr|proben id|labor id|" +
		"muestra|n muestra|no muestra|numero de muestra|num muestra|n de muestra|peticion|n peticion|numero de peticion|no de muestra|id muestra|cod muestra|codigo de muestra|referencia|no peticion|solicitud|n de peticion|num peticion|folio|n solicitud|" +
		"dossier|n dossier|n de dossier|numero de dossier|n echantillon|echantillon|numero d echantillon|ref dossier|no echantillon|no dossier|n d echantillon|demande|n demande|n de demande|specimen nr|sample nr|auftrag nr|case no|case number|control number|lab accession",
	fLab: "laboratory|lab|lab name|laboratory name|performing laboratory|performing lab|performed by|performed at|laboratorio|laboratoire|labor|reported by|testing laboratory|issued by|einsender labor|centro|reporting laboratory|analyzed by|tested at",
	fIgnore: "received|date received|printed|print date|age|alter|edad|physician|ordering physician|doctor|phone|telephone|tel|fax|address|mrn|patient id|id|account|account no|account number|client|eingang|eingangsdatum|druckdatum|arzt|einsender|telefon|anschrift|" +
		"patienten id|patienten nr|pat nr|medico|direccion|telefono|recibido|fecha de recepcion|recepcion|medecin|adresse|recu|recu le|date de reception|prescripteur|npi|clia|ordered by|requested by|referred by|provider|ordering provider|fasting|status|page|seite|pagina|" +
		"dni|nhc|historia|historia clinica|versicherung|insurance|kasse|ward|room|station|location|ref by|ref doctor|referring doctor|solicitado por|dr|director|medical director|lab director|comment|comments|note|notes|species|height|weight|patient no|patient number|hospital no|nhs no|" +
		"specimen type|sample type|material|tipo de muestra|email|web|website|priority|entry date|registered|registration date|visit|route|copy to|imprime le|fecha de impresion|impreso|gedruckt|clinical information|diagnosis|diagnose|diagnostico|unit|units|reference|reference range",
})

// titleWords make titles of documents and of their parts.
var titleWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`laboratory lab report reports result results final summary test tests of and clinical medical cumulative interim page confidential patient copy your blood
		laborbefund befund labor laborbericht befundbericht endbefund laborwerte blutbild bericht ergebnis ergebnisse seite
		informe resultados de laboratorio analisis analitica clinicos analiticos del la los pagina resultado
		compte rendu d analyses analyse resultats biologie medicale laboratoire du des le biologiques examens medicales bilan biologique`) {
		m[w] = true
	}
	return m
}()

// languageOf guesses the language of a document's frame from its labels and
// headings.
func languageOf(lines []line) string {
	votes := map[string]int{}
	for i := range lines {
		for _, t := range lines[i].tokens {
			for _, w := range foldWords(t.text) {
				if l := languageWords[w]; l != "" {
					votes[l]++
				}
			}
		}
	}
	best, most := "", 0
	for _, l := range []string{"en", "de", "es", "fr"} {
		if votes[l] > most {
			best, most = l, votes[l]
		}
	}
	return best
}

var languageWords = func() map[string]string {
	m := map[string]string{}
	for l, list := range map[string]string{
		"en": "patient name reported collected reference range units result results value birth date laboratory report sample specimen normal high low test sex gender female male blood count total interval the of and received flag issued born",
		"de": "abnahme ausgang geb einheit normbereich wert ergebnis befund laborbefund probe eingang geboren geburtsdatum geschlecht weiblich mannlich untersuchung referenzbereich seite datum leukozyten erythrozyten hamoglobin thrombozyten der die und von kreatinin glukose kalium natrium harnsaure cholesterin labor einheiten blutbild",
		"es": "paciente nombre fecha nacimiento sexo muestra toma emision prueba resultado unidad unidades valores referencia rango hombre mujer laboratorio informe edad medico glucosa hemoglobina leucocitos creatinina sodio potasio de del y colesterol plaquetas hematies trigliceridos extraccion peticion pagina",
		"fr": "prelevement naissance sexe resultat resultats unite unites valeurs reference normales nom prenom dossier analyse laboratoire femme homme medecin edite glycemie hematies leucocytes plaquettes creatinine date le du des et compte rendu echantillon hemoglobine ne nee biologie",
	} {
		for _, w := range strings.Fields(list) {
			if m[w] != "" {
				m[w] = "several"
				continue
			}
			m[w] = l
		}
	}
	return m
}()
