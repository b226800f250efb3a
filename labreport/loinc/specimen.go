package loinc

import (
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// Specimen is the examined material. Its values are those of the API field sample_type, and some that
// [Specimen.Published] converts.
type Specimen string

// Specimens. Clients must accept further ones.
const (
	Urine          Specimen = "urine"
	Blood          Specimen = "serum_plasma_blood"
	CapillaryBlood Specimen = "capillary_blood"
	Stool          Specimen = "stool"
	Saliva         Specimen = "saliva"
	OtherSpecimen  Specimen = "other"
	NoSpecimen     Specimen = "unknown"
)

// Fluids that are published as other and distinguished for matching: codes of one fluid are not used for
// another.
const (
	dayUrine      Specimen = "urine_24h" // urine collected over 24 hours; [Specimen.Published] returns urine
	cerebrospinal Specimen = "cerebrospinal_fluid"
	pleural       Specimen = "pleural_fluid"
	peritoneal    Specimen = "peritoneal_fluid"
	pericardial   Specimen = "pericardial_fluid"
	synovial      Specimen = "synovial_fluid"
	amniotic      Specimen = "amniotic_fluid"
	bile          Specimen = "bile"
	dialysate     Specimen = "dialysate"
	semen         Specimen = "semen"
	sweat         Specimen = "sweat"
)

// SeveralSpecimens is the specimen of a section with results of more than one specimen. [Specimen.Published] converts
// it to unknown, and no specimen is inferred for rows of the section.
const SeveralSpecimens Specimen = "several"

// Published returns the value of s in the API field sample_type.
func (s Specimen) Published() Specimen {
	switch s {
	case dayUrine:
		return Urine
	case cerebrospinal, pleural, peritoneal, pericardial, synovial, amniotic, bile, dialysate, semen, sweat:
		return OtherSpecimen
	case SeveralSpecimens:
		return NoSpecimen
	}
	return s
}

// Compatible reports whether a term of specimen of can be used for a row of specimen s. Serum, plasma, whole and
// capillary blood are not distinguished here.
func (s Specimen) Compatible(of Specimen) bool {
	blood := func(s Specimen) bool { return s == Blood || s == CapillaryBlood }
	switch {
	case s == NoSpecimen, s == SeveralSpecimens, of == NoSpecimen, s == of, blood(s) && blood(of), s == Urine && of == dayUrine:
		return true
	case of == OtherSpecimen: // a term of any fluid
		return s.Published() == OtherSpecimen
	}
	return false
}

// specimenWords are words for a specimen, in the form of [Key]: "heces" is "hece".
var specimenWords = func() map[string]Specimen {
	out := map[string]Specimen{}
	for word, of := range map[string]Specimen{
		"urine": Urine, "urinalysis": Urine, "urinstatus": Urine, "urinsediment": Urine, "urianalysis": Urine, "uroanalisis": Urine, "ecbu": Urine, "harnstatus": Urine, "urinteststreifen": Urine, "sammelurin": Urine, "sammelharn": Urine, "spontanurin": Urine, "mittelstrahlurin": Urine, "microalbuminuria": Urine,
		"serum": Blood, "plasma": Blood, "blood": Blood, "hematology": Blood, "hamatologie": Blood, "hematologia": Blood, "hematologie": Blood, "hemograma": Blood, "blutbild": Blood,
		"stool": Stool, "stuhl": Stool, "heces": Stool, "feces": Stool, "selles": Stool, "faeces": Stool, "fecal": Stool,
		"saliva": Saliva, "speichel": Saliva, "salive": Saliva, "capillary": CapillaryBlood, "kapillarblut": CapillaryBlood, "capilar": CapillaryBlood,
		"csf": cerebrospinal, "cerebrospinal": cerebrospinal, "liquor": cerebrospinal, "spinal": cerebrospinal, "lumbar": cerebrospinal, "rachidien": cerebrospinal, "lcr": cerebrospinal, "cefalorraquideo": cerebrospinal, "cephalorachidien": cerebrospinal,
		"pleural": pleural, "pleura": pleural, "thoracentesis": pleural, "pleurapunktat": pleural, "pleuraerguss": pleural,
		"peritoneal": peritoneal, "ascites": peritoneal, "ascitic": peritoneal, "aszites": peritoneal, "ascitis": peritoneal, "ascite": peritoneal, "ascitico": peritoneal, "peritoneo": peritoneal, "paracentesis": peritoneal,
		"bile": bile, "galle": bile, "bilis": bile,
		"pericardial": pericardial, "pericardico": pericardial, "pericardique": pericardial,
		"synovial": synovial, "synovialflussigkeit": synovial, "gelenkpunktat": synovial, "gelenkflussigkeit": synovial, "joint": synovial, "articular": synovial, "articulaire": synovial, "sinovial": synovial,
		"amniotic": amniotic, "fruchtwasser": amniotic, "amniotico": amniotic, "amniotique": amniotic,
		"dialysate": dialysate, "dialysat": dialysate, "dializado": dialysate,
		"semen": semen, "seminal": semen, "ejakulat": semen, "ejaculate": semen, "sperme": semen, "esperma": semen, "spermiogramm": semen, "spermogram": semen,
		"ponction": OtherSpecimen, "drain": OtherSpecimen, "sputum": OtherSpecimen, "esputo": OtherSpecimen, "swab": OtherSpecimen, "abstrich": OtherSpecimen, "punktat": OtherSpecimen,
		"fluid": OtherSpecimen, "aspirate": OtherSpecimen, "hair": OtherSpecimen, "haare": OtherSpecimen, "cheveux": OtherSpecimen, "lavage": OtherSpecimen, "bal": OtherSpecimen,
		"sweat": sweat, "schweiss": sweat, "sudor": sweat, "sueur": sweat,
	} {
		for _, w := range Key(word) {
			out[w] = of
		}
	}
	return out
}()

// siteWords are words that mean a specimen in a heading only. They do not in the name of an analyte, which may be
// measured in blood: gastric parietal cell antibodies, IgE against milk.
var siteWords = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range Key(`milk muttermilch leche lait marrow knochenmark medula moelle vitreous glaskorper gastric magensaft gastrico gastrique nasal nasopharyngeal
		throat rachen vaginal cervical urethral wound wunde herida plaie pus abscess abszess tear bronchial tracheal bronchoalveolar biopsy biopsie biopsia tissue gewebe nail
		meconium mekonium cyst zyste effusion erguss derrame epanchement transudate exudate secretion sekret`) {
		out[w] = true
	}
	return out
}()

// SpecimenOf returns the specimen in a heading or a statement. A named fluid has priority over an unnamed one,
// and both over blood: "blood cells in pleural fluid". It is [SeveralSpecimens] if the text joins two specimens:
// "Serum and urine".
func SpecimenOf(text string) Specimen {
	got := specimenInWords(text)
	words := Key(text)
	if (got == NoSpecimen || got == Blood) && slices.ContainsFunc(words, func(w string) bool { return siteWords[w] }) {
		got = OtherSpecimen
	}
	if reJoined.MatchString(text) && slices.ContainsFunc(words, func(w string) bool { s := specimenWords[w]; return s != "" && s != got && s != OtherSpecimen }) {
		return SeveralSpecimens
	}
	return got
}

// reJoined matches a word or a sign that joins two specimens.
var reJoined = regexp.MustCompile(`(?i)[&+/]|\b(?:and|und|y|et)\b`)

// Joins reports whether a heading joins two subjects: "Renal panel and urine".
func Joins(heading string) bool { return reJoined.MatchString(heading) }

var (
	// reSystem matches the specimen before a name in the nomenclature of the IFCC and IUPAC (NPU): "S-Sodium",
	// "fP-Glucose", "U-Albumin".
	reSystem = regexp.MustCompile(`^(?:([afvc]?[SPB])|([dt]?U))-\p{Lu}`)
	// reUrineLetter matches a name with the letter of urine at its end: "Sodium (U)", "Natrium i.U.".
	reUrineLetter = regexp.MustCompile(`[ ,](?:\(U\)|U|i\. ?U\.?)$`)
	reHidden      = regexp.MustCompile(`(?i)\b(?:occult|hidden|okkult|ocult|cach)`)
)

// NamedSpecimen returns the specimen in the name of an analyte; NoSpecimen if the name has none. The word blood
// alone, and occult blood, name an analyte and not a specimen.
func NamedSpecimen(name string) Specimen {
	if m := reSystem.FindStringSubmatch(name); m != nil {
		if m[2] != "" {
			return Urine
		}
		return Blood
	}
	got := specimenInWords(name)
	switch {
	case got == NoSpecimen && reUrineLetter.MatchString(name):
		return Urine
	case got == Blood && (reHidden.MatchString(name) || !slices.ContainsFunc(Key(name), func(w string) bool { return specimenWords[w] != Blood })):
		return NoSpecimen
	}
	return got
}

// specimenInWords returns the specimen that the words of a text name; NoSpecimen if they name none. A specific fluid
// has priority over an unspecific one, and over blood.
func specimenInWords(text string) Specimen {
	words := Key(text)
	got := NoSpecimen
	for _, w := range words {
		s := specimenWords[w]
		if s == bile && slices.ContainsFunc(words, func(w string) bool { return bileNames[w] }) {
			continue
		}
		if s != "" && (got == NoSpecimen || got == Blood || got == OtherSpecimen && s != Blood) {
			got = s
		}
	}
	if got == Urine && reDay.MatchString(text) {
		return dayUrine
	}
	return got
}

// StatedSpecimen returns the specimen in an explicit statement, such as the text after "Specimen:". Unlike
// [SpecimenOf] it returns NoSpecimen if the text names several specimens, or blood and another specimen.
func StatedSpecimen(text string) Specimen {
	of := SpecimenOf(text)
	if of == SeveralSpecimens || of != Blood && slices.ContainsFunc(Key(text), func(w string) bool { return specimenWords[w] == Blood }) {
		return NoSpecimen
	}
	return of
}

// bileNames are words after which "bile" is a part of an analyte's name: bile acids in serum.
var bileNames = map[string]bool{"acid": true, "salt": true, "pigment": true}

// reDay matches a collection over 24 hours.
var reDay = regexp.MustCompile(`(?i)\b24[ -]?(?:h|hr|hrs|std|stunden|hour|hours|horas|heures)\b|\b(?:sammelurin|sammelharn)\b`)

// fluidSystems are the systems of LOINC terms of body fluids, by a part of their name in words or in LOINC's
// abbreviations.
var fluidSystems = []struct {
	part string
	of   Specimen
}{
	{"csf", cerebrospinal}, {"cerebrospinal", cerebrospinal},
	{"plr fld", pleural}, {"pleural", pleural},
	{"periton", peritoneal}, {"ascit", peritoneal},
	{"pericard", pericardial},
	{"synv", synovial}, {"synovial", synovial},
	{"amnio", amniotic}, {"bil fld", bile}, {"bile", bile},
	{"dial", dialysate}, {"semen", semen}, {"smn", semen}, {"sweat", sweat}, {"sw", sweat},
	{"body fld", OtherSpecimen}, {"body fluid", OtherSpecimen},
}

// Specimen returns the specimen of the term's system.
func (t *Term) Specimen() Specimen {
	s := strings.ToLower(t.System)
	for _, f := range fluidSystems {
		if s == f.part || len(f.part) > 3 && strings.Contains(s, f.part) {
			return f.of
		}
	}
	switch {
	case s == "24h urine":
		return dayUrine
	case strings.Contains(s, "urine"), s == "ur", strings.HasPrefix(s, "urine"):
		return Urine
	case s == "stool":
		return Stool
	case s == "saliva":
		return Saliva
	case strings.Contains(s, "capillary"), s == "bldc":
		return CapillaryBlood
	case strings.Contains(s, "serum"), strings.Contains(s, "plasma"), strings.Contains(s, "blood"), strings.Contains(s, "red cell"),
		strings.HasPrefix(s, "ser"), strings.HasPrefix(s, "bld"), s == "plas", s == "ppp", s == "rbc", s == "plt", s == "wbc":
		return Blood
	case s == "":
		return NoSpecimen
	}
	return OtherSpecimen
}

// inFluids are components that are measured in blood or urine and also in other body fluids, whether or not the
// catalogue has codes for these fluids.
var inFluids = fold.Set(`glucose protein albumin lactate amylase lipase cholesterol triglyceride bilirubin creatinine urea leukocyte erythrocyte neutrophil lymphocyte monocyte eosinophil
	macrophage ph sodium potassium chloride ldh adenosine`)

// everywhere are components of urine in the catalogue that laboratories also examine in other specimens, whether or not
// the catalogue has codes for those.
var everywhere = fold.Set(`appearance clarity color turbidity volume crystal bacteria yeast mucus cell cast ph gravity parasite consistency odor fungi`)

// ImpliedSpecimen returns the specimen that the terms with the best likeness to a name have in common. It returns
// NoSpecimen if the specimens differ or if laboratories also measure the analyte in other body fluids.
func ImpliedSpecimen(found []Found) Specimen {
	got := NoSpecimen
	for _, f := range found {
		if f.Likeness < 0.8 || f.Likeness < found[0].Likeness-0.12 {
			break
		}
		of := f.Term.Specimen()
		if of == CapillaryBlood {
			of = Blood
		}
		switch {
		case of == NoSpecimen:
		case got == NoSpecimen:
			got = of
		case got != of:
			return NoSpecimen
		}
		words := Key(f.Term.Component)
		if of == Blood && slices.ContainsFunc(words, func(w string) bool { return inFluids[w] }) && !strings.ContainsAny(f.Term.Component, "/.") ||
			of.Published() == Urine && slices.ContainsFunc(words, func(w string) bool { return everywhere[w] || inFluids[w] }) && !strings.Contains(f.Term.Component, "/") {
			return NoSpecimen
		}
	}
	return got
}
